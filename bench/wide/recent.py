"""Parts of models and methods of late: latent attention, state spaces, samplers, drafts, small floats, grids."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, mask, normal, positive, program, uniform


@program(
    normal(16, 128, 512, dtype=BF16), normal(16, 128, 64, dtype=BF16),
    normal(16, 2048, 512, dtype=BF16), normal(16, 2048, 64, dtype=BF16),
)  # fmt: skip
def latent_attention_of_one_word(query: Tensor, turned: Tensor, latent: Tensor, turned_key: Tensor) -> Tensor:
    """DeepSeek's multi-head latent attention with absorbed weights: all heads share keys, which are the values too."""
    scores = query @ latent.transpose(1, 2) + turned @ turned_key.transpose(1, 2)
    return torch.softmax(scores.float() * 0.0417, -1).to(latent.dtype) @ latent


@program(normal(8, 24, 32, 64))
def decays_within_chunks(rate: Tensor) -> Tensor:
    """Mamba-2: how much of what came in at one place of a chunk is left at another."""
    total = -F.softplus(rate).cumsum(-1)
    before = torch.ones(64, 64, dtype=torch.bool, device=rate.device).tril()
    return torch.exp((total[..., :, None] - total[..., None, :]).masked_fill(~before, -torch.inf))


@program(
    normal(64, 16, 128, 128), normal(64, 16, 128, dtype=BF16), normal(64, 16, 128, dtype=BF16),
    normal(64, 16, 128, dtype=BF16), normal(64, 16), normal(64, 16),
)  # fmt: skip
def one_word_of_a_gated_delta_rule(
    state: Tensor, query: Tensor, key: Tensor, value: Tensor, gate: Tensor, rate: Tensor
) -> tuple[Tensor, Tensor]:
    """The memory forgets, is asked for the key, and learns what it got wrong."""
    k, q = F.normalize(key.float(), dim=-1), F.normalize(query.float(), dim=-1)
    state = state * torch.sigmoid(gate)[..., None, None]
    wrong = (value.float() - (state * k[..., None]).sum(-2)) * torch.sigmoid(rate)[..., None]
    state = state + k[..., None] * wrong[..., None, :]
    return (state * q[..., None]).sum(-2).to(BF16), state


@program(*[normal(16, 16, 128, 128, dtype=BF16)] * 3, normal(16, 16, 128, 128), positive(16), positive(16))
def guided_step_of_a_multistep_sampler(
    with_text: Tensor, without: Tensor, previous: Tensor, x: Tensor, sigma: Tensor, after: Tensor
) -> tuple[Tensor, Tensor]:
    """DPM-Solver++ (2M) with guidance whose deviation is scaled back to that of the model's answer."""
    sigma, after = sigma[:, None, None, None] + 0.5, after[:, None, None, None] + 0.1
    answer = with_text.float()
    guided = without.float() + 5.0 * (answer - without.float())
    scale = answer.std(dim=(1, 2, 3), keepdim=True) / guided.std(dim=(1, 2, 3), keepdim=True)
    guided = 0.7 * guided * scale + 0.3 * guided
    denoised = x - sigma * guided
    ahead = 1.5 * denoised - 0.5 * previous.float()
    ratio = after / sigma
    return ratio * x + (1 - ratio) * ahead, denoised


@program(normal(64, 32000, dtype=BF16), normal(64, 32000, dtype=BF16))
def chances_after_a_refused_draft(target: Tensor, draft: Tensor) -> Tensor:
    """Speculative decoding: what is drawn from, once a draft's word was refused."""
    left = (torch.softmax(target.float(), -1) - torch.softmax(draft.float(), -1)).clamp(min=0)
    return left / left.sum(-1, keepdim=True)


@program(
    normal(64, 4096, dtype=BF16), normal(32, 4096, 16, dtype=BF16), normal(32, 16, 4096, dtype=BF16),
    index(64, high=32), normal(64, 4096, dtype=BF16),
)  # fmt: skip
def adapters_of_their_own_in_one_batch(x: Tensor, down: Tensor, up: Tensor, which: Tensor, base: Tensor) -> Tensor:
    """Each row of a batch has a low-rank adapter of its own."""
    inner = (x[:, None].float() * down[which].transpose(1, 2).float()).sum(-1)
    return base + 2 * (inner[:, :, None] * up[which].float()).sum(1).to(BF16)


@program(normal(8192, 4096, dtype=BF16))
def groups_of_16_as_four_bit_floats(x: Tensor) -> tuple[Tensor, Tensor]:
    """NVFP4: numbers of 0, 0.5, 1, 1.5, 2, 3, 4, 6 and their negatives, with a scale for each sixteen."""
    groups = x.float().view(8192, 256, 16)
    scale = groups.abs().amax(-1, keepdim=True).clamp(min=1e-6) / 6
    size = (groups / scale).abs()
    step = torch.where(size < 1.75, 0.5, torch.where(size < 3.5, 1.0, 2.0))
    near = torch.round(size / step) * step
    return (torch.copysign(near, groups) * scale).to(BF16).view(8192, 4096), scale.squeeze(-1)


@program(
    normal(1, 8192, dtype=BF16), index(8192, 4096, high=256, dtype=torch.uint8), normal(8192, 64), uniform(8192, 64)
)
def one_word_through_four_bit_weights(x: Tensor, codes: Tensor, scale: Tensor, zero: Tensor) -> Tensor:
    """Two codes a byte, groups of 128 along the row."""
    both = torch.stack((codes & 15, codes >> 4), -1).view(8192, 64, 128).float()
    weight = ((both - zero[..., None] * 15) * scale[..., None]).view(8192, 8192)
    return (weight * x.float()).sum(-1)


@program(
    normal(2, 64, 8, 64, 64, dtype=BF16),
    normal(64, 64, 3, 3, 3, dtype=BF16),
    normal(64, dtype=BF16),
    limit="arithmetic",
)
def video_convolution_that_looks_back(x: Tensor, weight: Tensor, bias: Tensor) -> Tensor:
    """Causal in time: two frames before the first one."""
    padded = F.pad(F.silu(x), (1, 1, 1, 1, 2, 0))
    return x + F.conv3d(padded, weight, bias) * 0.1


@program(positive(2048, 2048), normal(2048, 2048), normal(2048, 2048))
def step_of_shallow_water(height: Tensor, u: Tensor, v: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    def along(x: Tensor, axis: int) -> Tensor:
        return (torch.roll(x, -1, axis) - torch.roll(x, 1, axis)) / 2

    h = height + 1
    new_u = u - 0.01 * (u * along(u, 1) + v * along(u, 0) + 9.81 * along(h, 1)) - 0.001 * u
    new_v = v - 0.01 * (u * along(v, 1) + v * along(v, 0) + 9.81 * along(h, 0)) - 0.001 * v
    return h - 0.01 * (along(h * u, 1) + along(h * v, 0)), new_u, new_v


@program(normal(2, 16, 1024, 1024, dtype=BF16), normal(2, 16, 1024, 16))
def softmax_within_chosen_blocks(scores: Tensor, of_blocks: Tensor) -> Tensor:
    """Native sparse attention: each query sees the four best of sixteen blocks, and not what comes after it."""
    _, best = of_blocks.topk(4, -1)
    chosen = torch.zeros_like(of_blocks, dtype=torch.bool).scatter(-1, best, True)
    place = torch.arange(1024, device=scores.device)
    is_own = (place[:, None] // 64) == torch.arange(16, device=scores.device)
    seen = (chosen | is_own).repeat_interleave(64, -1) & (place[:, None] >= place)
    return torch.softmax(scores.float().masked_fill(~seen, -torch.inf) * 0.088, -1).to(BF16)


@program(normal(512, 1024), normal(512, 1024), normal(512), mask(512, 1024), gradients=True)
def policy_loss_by_ratios_of_sequences(new: Tensor, old: Tensor, advantage: Tensor, said: Tensor) -> Tensor:
    """GSPO: one ratio for an answer, the geometric mean of those of its words; clipped on each side otherwise."""
    length = said.sum(-1)
    ratio = torch.exp(torch.where(said, (new - old.detach()) * 0.01, 0).sum(-1) / length)
    advantage = advantage.detach()
    return -torch.minimum(ratio * advantage, ratio.clamp(1 - 0.2, 1 + 0.28) * advantage).mean()


@program(
    normal(4, 256, 32000, dtype=BF16), normal(4, 256, 32000, dtype=BF16), index(4, 256, high=32000), gradients=True
)
def words_of_a_policy_and_its_reference(
    policy: Tensor, reference: Tensor, word: Tensor
) -> tuple[Tensor, Tensor, Tensor]:
    """What a step of reinforcement learning from answers needs of two models' scores."""
    ours, theirs = torch.log_softmax(policy.float(), -1), torch.log_softmax(reference.detach().float(), -1)
    chance = ours.exp()
    said = ours.gather(-1, word[..., None]).squeeze(-1)
    return said, -(chance * ours).sum(-1), (chance * (ours - theirs)).sum(-1)


@program(
    normal(16384, 1024, dtype=BF16),
    index(16384, high=8192),
    uniform(16384),
    normal(8192, 1024, dtype=BF16),
    gradients=True,
)
def answers_of_experts_added_back(answers: Tensor, word: Tensor, weight: Tensor, shared: Tensor) -> Tensor:
    """Two answers for each word, in the order of the experts."""
    return shared.index_add(0, word, answers * weight[:, None].to(BF16))


@program(uniform(1 << 18, 3), normal(8, 1 << 17, 2))
def features_of_a_hash_grid(place: Tensor, table: Tensor) -> Tensor:
    """Instant neural graphics primitives: eight resolutions, eight corners of a cell each."""
    levels = []
    for level in range(8):
        scaled = place * (16 * 1.5**level)
        low = scaled.floor()
        part, cell = scaled - low, low.long()
        total = torch.zeros(place.shape[0], 2, device=place.device, dtype=place.dtype)
        for corner in range(8):
            far = [corner >> axis & 1 for axis in range(3)]
            x, y, z = (cell[:, axis] + far[axis] for axis in range(3))
            row = (x ^ (y * 2654435761) ^ (z * 805459861)) & ((1 << 17) - 1)
            share = torch.stack([part[:, axis] if far[axis] else 1 - part[:, axis] for axis in range(3)]).prod(0)
            total = total + table[level][row] * share[:, None]
        levels.append(total)
    return torch.cat(levels, -1)


@program(
    normal(4096, 4, 1024, dtype=BF16), normal(4096, 1024, dtype=BF16), normal(4096, 4, 4), normal(4096, 4),
)  # fmt: skip
def four_residual_streams_mixed(streams: Tensor, branch: Tensor, mixing: Tensor, share: Tensor) -> Tensor:
    """Hyper-connections whose mixing is brought near to a doubly stochastic matrix."""
    weights = torch.exp(mixing)
    for _ in range(3):
        weights = weights / weights.sum(-1, keepdim=True)
        weights = weights / weights.sum(-2, keepdim=True)
    mixed = (weights[..., None] * streams.float()[:, None]).sum(2)
    return (mixed + torch.sigmoid(share)[..., None] * branch.float()[:, None]).to(BF16)
