"""Images: layouts, colours, pools, gates and filters."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, F16, index, normal, positive, program, uniform


@program(normal(16, 256, 64, 64), normal(256))
def pixels_shuffled_after_a_bias(x: Tensor, bias: Tensor) -> Tensor:
    return F.relu(F.pixel_shuffle(x + bias[:, None, None], 2))


@program(normal(16, 48, 256, 256, dtype=BF16))
def pixels_gathered_into_channels(x: Tensor) -> Tensor:
    return F.pixel_unshuffle(x, 2) * 0.5


@program(index(64, 224, 224, 3, high=256, dtype=torch.uint8), normal(3), positive(3))
def bytes_to_normalised_planes(image: Tensor, mean: Tensor, deviation: Tensor) -> Tensor:
    return ((image / 255.0 - mean) / (deviation + 0.1)).permute(0, 3, 1, 2).contiguous()


@program(normal(64, 3, 224, 224))
def patches_of_sixteen(image: Tensor) -> Tensor:
    tiles = image.view(64, 3, 14, 16, 14, 16)
    return tiles.permute(0, 2, 4, 3, 5, 1).reshape(64, 196, 768)


@program(normal(32, 256, 2 * 2 * 16, dtype=BF16))
def latents_from_patches(patches: Tensor) -> Tensor:
    return patches.view(32, 16, 16, 2, 2, 16).permute(0, 5, 1, 3, 2, 4).reshape(32, 16, 32, 32) * 1.5


@program(normal(32, 56, 56, 96), normal(96), normal(96))
def shifted_windows_of_a_norm(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    rolled = torch.roll(F.layer_norm(x, (96,), weight, bias), (-3, -3), (1, 2))
    return rolled.view(32, 8, 7, 8, 7, 96).transpose(2, 3).reshape(-1, 49, 96)


@program(normal(2048, 49, 96), normal(32, 56, 56, 96))
def windows_put_back_and_added(windows: Tensor, shortcut: Tensor) -> Tensor:
    image = windows.view(32, 8, 8, 7, 7, 96).transpose(2, 3).reshape(32, 56, 56, 96)
    return shortcut + torch.roll(image, (3, 3), (1, 2))


@program(normal(32, 240, 28, 28, dtype=F16))
def channels_shuffled(x: Tensor) -> Tensor:
    return F.relu(x.view(32, 3, 80, 28, 28).transpose(1, 2).reshape(32, 240, 28, 28))


@program(uniform(16, 3, 512, 512))
def hue_saturation_value(image: Tensor) -> Tensor:
    high, low = image.amax(1), image.amin(1)
    red, green, blue = image.unbind(1)
    span = high - low + 1e-5
    hue = torch.where(high == red, (green - blue) / span, torch.where(high == green, 2 + (blue - red) / span, 4.0))
    return torch.stack((hue / 6, (high - low) / (high + 1e-5), high), 1)


@program(uniform(16, 3, 512, 512))
def luma_and_chroma(image: Tensor) -> tuple[Tensor, Tensor]:
    red, green, blue = image[:, 0], image[:, 1], image[:, 2]
    luma = 0.299 * red + 0.587 * green + 0.114 * blue
    return luma, torch.stack((0.564 * (blue - luma), 0.713 * (red - luma)), 1)


@program(uniform(4, 1080, 1920, 3))
def linear_light_of_a_photograph(image: Tensor) -> Tensor:
    return torch.where(image <= 0.04045, image / 12.92, ((image + 0.055) / 1.055) ** 2.4)


@program(normal(16, 128, 32, 32), normal(16, 128, 64, 64))
def nearest_neighbours_added(small: Tensor, large: Tensor) -> Tensor:
    return F.interpolate(small, scale_factor=2.0, mode="nearest") + large


@program(normal(16, 64, 56, 56))
def twice_as_large_by_lines(x: Tensor) -> Tensor:
    return F.interpolate(x, scale_factor=2.0, mode="bilinear", align_corners=False)


@program(normal(8, 19, 97, 97, dtype=F16))
def classes_at_the_size_of_the_image(x: Tensor) -> Tensor:
    return F.interpolate(x, size=(385, 385), mode="bilinear", align_corners=True).argmax(1)


@program(normal(32, 64, 112, 112))
def largest_of_overlapping_windows(x: Tensor) -> Tensor:
    return F.max_pool2d(F.relu(x), 3, 2, 1)


@program(normal(64, 64, 112, 112))
def largest_of_windows(x: Tensor) -> Tensor:
    return F.max_pool2d(x, 2)


@program(normal(64, 64, 112, 112))
def means_of_windows(x: Tensor) -> Tensor:
    return F.avg_pool2d(x, 2)


@program(normal(32, 512, 14, 14))
def pyramid_of_means(x: Tensor) -> Tensor:
    return torch.cat([F.adaptive_avg_pool2d(x, size).flatten(2) for size in (1, 2, 7)], -1)


@program(normal(32, 256, 56, 56), normal(32, 256))
def squeezed_and_gated(x: Tensor, gate: Tensor) -> Tensor:
    squeezed = x.mean((2, 3)) * gate
    return x * torch.sigmoid(squeezed)[:, :, None, None]


@program(normal(32, 256, 40, 40))
def mean_and_largest_of_channels(x: Tensor) -> Tensor:
    pooled = torch.cat((x.mean(1, keepdim=True), x.amax(1, keepdim=True)), 1)
    return x * torch.sigmoid(pooled.sum(1, keepdim=True))


@program(normal(16, 12, 512, 512, dtype=F16))
def every_second_pixel_side_by_side(x: Tensor) -> Tensor:
    return torch.cat((x[..., ::2, ::2], x[..., 1::2, ::2], x[..., ::2, 1::2], x[..., 1::2, 1::2]), 1)


@program(uniform(4096, 4), uniform(4096, 4))
def overlaps_of_all_boxes(a: Tensor, b: Tensor) -> Tensor:
    a, b = torch.cat((a[:, :2], a[:, :2] + a[:, 2:]), 1), torch.cat((b[:, :2], b[:, :2] + b[:, 2:]), 1)
    size = (torch.minimum(a[:, None, 2:], b[:, 2:]) - torch.maximum(a[:, None, :2], b[:, :2])).clamp(min=0)
    both = size[..., 0] * size[..., 1]
    areas = [(one[:, 2] - one[:, 0]) * (one[:, 3] - one[:, 1]) for one in (a, b)]
    return both / (areas[0][:, None] + areas[1] - both + 1e-7)


@program(normal(64, 8400, 4, dtype=F16), normal(8400, 2, dtype=F16))
def boxes_from_distances(distances: Tensor, centres: Tensor) -> Tensor:
    before, after = distances.sigmoid().chunk(2, -1)
    low, high = centres - before, centres + after
    return torch.cat(((low + high) / 2, high - low), -1)


@program(normal(16, 3 * 85, 80, 80))
def boxes_of_a_grid(raw: Tensor) -> Tensor:
    values = raw.view(16, 3, 85, 80, 80).permute(0, 1, 3, 4, 2).sigmoid()
    place = torch.arange(80, device=raw.device, dtype=raw.dtype)
    grid = torch.stack((place.expand(80, 80), place[:, None].expand(80, 80)), -1)
    centre = values[..., :2] * 2 - 0.5 + grid
    return torch.cat((centre * 8, (values[..., 2:4] * 2) ** 2, values[..., 4:]), -1).flatten(1, 3)


@program(normal(8, 3, 1024, 1024))
def strength_of_edges(image: Tensor) -> Tensor:
    x = F.pad(image.mean(1), (1, 1, 1, 1))
    smooth = x[:, :-2] + 2 * x[:, 1:-1] + x[:, 2:]
    slope = x[:, 2:] - x[:, :-2]
    return torch.hypot(smooth[..., 2:] - smooth[..., :-2], slope[..., 2:] + 2 * slope[..., 1:-1] + slope[..., :-2])


@program(uniform(32, 3, 384, 384))
def blurred_by_five_taps(image: Tensor) -> Tensor:
    for dim in (2, 3):
        taps = image.unfold(dim, 5, 1)
        image = taps[..., 0] * 0.1 + taps[..., 1] * 0.2 + taps[..., 2] * 0.4 + taps[..., 3] * 0.2 + taps[..., 4] * 0.1
    return image


@program(uniform(8, 4, 768, 768), uniform(8, 4, 768, 768))
def one_image_over_another(top: Tensor, below: Tensor) -> Tensor:
    alpha = top[:, 3:] + below[:, 3:] * (1 - top[:, 3:])
    colour = (top[:, :3] * top[:, 3:] + below[:, :3] * below[:, 3:] * (1 - top[:, 3:])) / (alpha + 1e-6)
    return torch.cat((colour, alpha), 1)


@program(uniform(8, 1, 640, 640), uniform(8, 1, 640, 640))
def structural_similarity(x: Tensor, y: Tensor) -> Tensor:
    mean_x, mean_y = F.avg_pool2d(x, 7, 1), F.avg_pool2d(y, 7, 1)
    var_x, var_y = F.avg_pool2d(x * x, 7, 1) - mean_x**2, F.avg_pool2d(y * y, 7, 1) - mean_y**2
    cov = F.avg_pool2d(x * y, 7, 1) - mean_x * mean_y
    numerator = (2 * mean_x * mean_y + 1e-4) * (2 * cov + 9e-4)
    return (numerator / ((mean_x**2 + mean_y**2 + 1e-4) * (var_x + var_y + 9e-4))).mean((1, 2, 3))


@program(normal(16, 21, 256, 256))
def mean_over_mirrored_scores(scores: Tensor) -> Tensor:
    mirrored = scores.flip(-1)
    return (torch.softmax(scores, 1) + torch.softmax(mirrored, 1).flip(-1)) / 2


@program(normal(16, 32, 128, 128), normal(16, 128, 128, 2))
def warped_by_a_field(image: Tensor, field: Tensor) -> Tensor:
    return F.grid_sample(image, field.tanh(), align_corners=False)


@program(index(16, 1, 720, 1280, high=256, dtype=torch.uint8), index(16, 1, 720, 1280, high=256, dtype=torch.uint8))
def frames_that_differ(now: Tensor, before: Tensor) -> tuple[Tensor, Tensor]:
    difference = (now.to(torch.int16) - before.to(torch.int16)).abs()
    return (difference > 25).to(torch.uint8) * 255, difference.float().mean((1, 2, 3))


@program(normal(32, 56, 56, 128), normal(7, 7, 128), normal(128))
def dilated_depthwise_by_slices(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    padded = F.pad(x, (0, 0, 2, 2, 2, 2))
    taps = [padded[:, i : i + 56, j : j + 56] * weight[i, j] for i in (0, 2, 4) for j in (0, 2, 4)]
    return F.gelu(torch.stack(taps).sum(0) + bias)
