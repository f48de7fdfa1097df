"""Few bits for many: quantising, packing, and back."""

from __future__ import annotations

import torch
from torch import Tensor

from bench.wide.declare import BF16, F16, index, mask, normal, positive, program

UINT8 = torch.uint8


@program(normal(8192, 4096, dtype=BF16))
def rows_to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(-1, keepdim=True).float() / 127
    return torch.round(x.float() / scale.clamp(min=1e-8)).clamp(-127, 127).to(torch.int8), scale


@program(normal(8192, 4096))
def whole_tensor_to_int8(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax() / 127
    return torch.round(x / scale).to(torch.int8), scale


@program(normal(4096, 4096, dtype=F16))
def groups_to_four_bits_packed(weight: Tensor) -> tuple[Tensor, Tensor]:
    groups = weight.view(4096, 32, 128)
    scale = groups.abs().amax(-1, keepdim=True) / 7
    code = (torch.round(groups / scale).clamp(-8, 7).to(torch.int32) + 8).view(4096, 2048, 2)
    return (code[..., 0] | (code[..., 1] << 4)).to(UINT8), scale


@program(index(4096, 2048, high=256, dtype=UINT8), normal(4096, 32, dtype=F16))
def four_bits_unpacked(packed: Tensor, scale: Tensor) -> Tensor:
    codes = torch.stack((packed & 15, packed >> 4), -1).view(4096, 32, 128)
    return ((codes.to(torch.int8) - 8) * scale[:, :, None]).view(4096, 4096)


@program(index(4096, 512, high=1 << 31, dtype=torch.int32), normal(4096, 32, dtype=F16), index(4096, 32, high=16))
def eight_codes_of_a_word(packed: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    shift = torch.arange(0, 32, 4, device=packed.device)
    code = ((packed[..., None] >> shift) & 15).view(4096, 32, 128)
    return ((code - zero[..., None]).to(scale.dtype) * scale[..., None]).view(4096, 4096)


@program(normal(8192, 4096, dtype=BF16))
def rows_to_eight_bit_floats(x: Tensor) -> tuple[Tensor, Tensor]:
    scale = x.abs().amax(-1, keepdim=True).float().clamp(min=1e-6) / 448
    return (x.float() / scale).to(torch.float8_e4m3fn), scale


@program(normal(4096, 4096, dtype=BF16))
def tiles_to_eight_bit_floats(weight: Tensor) -> tuple[Tensor, Tensor]:
    tiles = weight.float().view(32, 128, 32, 128)
    scale = tiles.abs().amax((1, 3), keepdim=True) / 448
    return (tiles / scale).to(torch.float8_e4m3fn).view(4096, 4096), scale.view(32, 32)


@program(normal(4096, 7168, dtype=BF16))
def blocks_scaled_by_powers_of_two(x: Tensor) -> tuple[Tensor, Tensor]:
    blocks = x.float().unflatten(-1, (-1, 32))
    exponent = torch.floor(torch.log2(blocks.abs().amax(-1, keepdim=True) + 1e-9)) - 8
    return (blocks * torch.exp2(-exponent)).to(torch.float8_e4m3fn).flatten(-2), exponent.to(torch.int8)


@program(index(2048, 4096, high=256, dtype=UINT8), normal(16), positive(2048 * 4096 // 32))
def codes_looked_up_and_scaled(packed: Tensor, table: Tensor, scale: Tensor) -> Tensor:
    high, low = table[(packed >> 4).int()], table[(packed & 15).int()]
    values = torch.stack((high, low), -1).view(-1, 64) * scale[:, None]
    return values.view(4096, 4096).to(torch.bfloat16)


@program(normal(1024, 8192))
def ternary_weights(weight: Tensor) -> tuple[Tensor, Tensor]:
    scale = weight.abs().mean().clamp(min=1e-5)
    return torch.round(weight / scale).clamp(-1, 1).to(torch.int8), scale


@program(normal(256, 512, 3, 3), positive(256))
def as_if_quantised_by_channel(weight: Tensor, scale: Tensor) -> Tensor:
    scale = scale[:, None, None, None] / 64 + 1e-3
    return ((weight / scale).round().clamp(-128, 127) * scale).to(torch.bfloat16)


@program(index(8192, 4096, high=1 << 20, dtype=torch.int32), positive(8192), positive(4096), normal(4096))
def sums_of_products_scaled_back(total: Tensor, rows: Tensor, columns: Tensor, bias: Tensor) -> Tensor:
    return torch.relu(total * 1e-5 * rows[:, None] * columns + bias)


@program(mask(8192, 4096))
def flags_to_bits(flags: Tensor) -> Tensor:
    weight = 1 << torch.arange(8, device=flags.device, dtype=torch.int32)
    return (flags.view(8192, 512, 8) * weight).sum(-1).to(UINT8)


@program(index(8192, 512, high=256, dtype=UINT8))
def bits_to_signs(packed: Tensor) -> Tensor:
    bits = (packed[..., None] >> torch.arange(8, device=packed.device, dtype=UINT8)) & 1
    return (bits.float() * 2 - 1).flatten(-2).to(torch.bfloat16)


@program(normal(32768, 8), normal(128, 8))
def nearest_entry_of_a_codebook(x: Tensor, codebook: Tensor) -> Tensor:
    return (x[:, None] - codebook).square().sum(-1).amin(1)


@program(normal(8192, 4096, dtype=BF16), normal(4096, dtype=BF16))
def norm_and_rows_to_int8(x: Tensor, weight: Tensor) -> tuple[Tensor, Tensor]:
    wide = x.float()
    normed = wide * torch.rsqrt(wide.square().mean(-1, keepdim=True) + 1e-6) * weight.float()
    scale = normed.abs().amax(-1, keepdim=True) / 127
    return torch.round(normed / scale).to(torch.int8), scale


@program(normal(1000, 1000))
def smallest_and_largest_to_bytes(x: Tensor) -> Tensor:
    low, high = x.amin(), x.amax()
    return ((x - low) / (high - low) * 255).to(UINT8)
