"""Losses of policies, values and preferences, forward and backward, and returns unrolled over time."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from bench.wide.declare import BF16, index, mask, normal, program


@program(normal(1 << 19, 18), normal(1 << 19), normal(1 << 19), index(1 << 19, high=18), gradients=True)
def ppo_clipped_policy_loss(logits: Tensor, old: Tensor, advantage: Tensor, action: Tensor) -> tuple[Tensor, Tensor]:
    log_p = F.log_softmax(logits, -1)
    ratio = (log_p.gather(1, action[:, None]).squeeze(1) + 3.0 - old.detach()).exp()
    gain = advantage.detach()
    loss = -torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain).mean()
    return loss, -(log_p.exp() * log_p).sum(-1).mean()


@program(normal(1 << 20), normal(1 << 20), normal(1 << 20), gradients=True)
def ppo_clipped_value_loss(value: Tensor, old: Tensor, returns: Tensor) -> Tensor:
    near = old.detach() + (value - old.detach()).clamp(-0.2, 0.2)
    goal = returns.detach()
    return 0.5 * torch.maximum((value - goal).square(), (near - goal).square()).mean()


@program(normal(1024, 512), normal(1024, 512), normal(1024, 512), normal(128, 8), mask(1024, 512), gradients=True)
def grpo_loss_of_groups(log_p: Tensor, old: Tensor, frozen: Tensor, reward: Tensor, kept: Tensor) -> Tensor:
    reward = reward.detach()
    gain = ((reward - reward.mean(1, keepdim=True)) / (reward.std(1, keepdim=True) + 1e-4)).reshape(1024, 1)
    ratio = torch.exp(log_p - old.detach())
    surrogate = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
    d = frozen.detach() - log_p
    loss = (0.04 * (d.exp() - d - 1) - surrogate) * kept
    return (loss.sum(1) / kept.sum(1)).mean()


@program(normal(16, 256, 4096, dtype=BF16), normal(16), index(16, 256, high=4096), mask(16, 256), gradients=True)
def dpo_loss_of_logits(logits: Tensor, reference: Tensor, words: Tensor, kept: Tensor) -> Tensor:
    log_p = logits.float().log_softmax(-1).gather(2, words[:, :, None]).squeeze(2)
    chosen, rejected = ((log_p * kept).sum(1) * 0.01 - reference.detach()).chunk(2)
    return -F.logsigmoid(0.1 * (chosen - rejected)).mean()


@program(normal(1 << 18, 64), normal(1 << 18), normal(1 << 18), index(1 << 18, high=64), gradients=True)
def advantage_actor_critic_loss(logits: Tensor, value: Tensor, returns: Tensor, action: Tensor) -> Tensor:
    log_p = logits.log_softmax(-1)
    gain = returns.detach() - value
    chosen = log_p.gather(-1, action.unsqueeze(-1)).squeeze(-1)
    entropy = -(log_p.exp() * log_p).sum(-1)
    return (-(chosen * gain.detach()) + 0.5 * gain.square() - 0.01 * entropy).mean()


@program(normal(16, 262144), normal(17, 262144), mask(16, 262144))
def generalised_advantages_of_16_steps(reward: Tensor, value: Tensor, ended: Tensor) -> Tensor:
    goes_on = 1.0 - ended.to(reward.dtype)
    last = torch.zeros_like(reward[0])
    steps = []
    for t in reversed(range(16)):
        delta = reward[t] + 0.99 * value[t + 1] * goes_on[t] - value[t]
        last = delta + 0.99 * 0.95 * goes_on[t] * last
        steps.append(last)
    return torch.stack(steps[::-1])


@program(normal(65536, 12), normal(65536, 12), normal(65536, 13), normal(65536, 12))
def vtrace_targets_of_12_steps(log_ratio: Tensor, reward: Tensor, value: Tensor, discount: Tensor) -> Tensor:
    rho = log_ratio.exp().clamp(max=1.0)
    gamma = discount.sigmoid()
    last = torch.zeros_like(value[:, 0])
    targets = []
    for t in reversed(range(12)):
        delta = rho[:, t] * (reward[:, t] + gamma[:, t] * value[:, t + 1] - value[:, t])
        last = delta + gamma[:, t] * rho[:, t] * last
        targets.append(last + value[:, t])
    return torch.stack(targets[::-1], 1)


@program(normal(1 << 19, 12), normal(1 << 19, 6), gradients=True)
def squashed_gaussian_policy(heads: Tensor, noise: Tensor) -> tuple[Tensor, Tensor]:
    """Soft actor-critic: an action and its log-probability."""
    mean, log_spread = heads.chunk(2, -1)
    log_spread = -5 + 3.5 * (torch.tanh(log_spread) + 1)
    raw = mean + log_spread.exp() * noise.detach()
    log_p = -0.5 * noise.detach().square() - log_spread - 0.9189385
    correction = 2 * (0.6931472 - raw - F.softplus(-2 * raw))
    return torch.tanh(raw), (log_p - correction).sum(-1)


@program(normal(1 << 19, 18), normal(1 << 19, 18), normal(1 << 19, 18), normal(1 << 19), gradients=True)
def double_q_learning_loss(online: Tensor, ahead: Tensor, frozen: Tensor, reward: Tensor) -> Tensor:
    best = ahead.detach().argmax(1, keepdim=True)
    goal = reward.detach() + 0.99 * frozen.detach().gather(1, best).squeeze(1)
    return F.smooth_l1_loss(online[:, 0], goal)


@program(normal(16384, 32), normal(16384, 32), normal(16384), gradients=True)
def quantile_huber_loss(quantiles: Tensor, ahead: Tensor, reward: Tensor) -> Tensor:
    goal = reward.detach()[:, None] + 0.99 * ahead.detach()
    d = goal[:, None, :] - quantiles[:, :, None]
    level = (torch.arange(32, device=d.device)[:, None] + 0.5) / 32
    loss = torch.where(d.abs() < 1, 0.5 * d.square(), d.abs() - 0.5)
    return ((level - (d < 0).to(d.dtype)).abs() * loss).mean(2).sum(1).mean()


@program(normal(65536, 256), index(65536, high=256), gradients=True)
def conservative_q_penalty(values: Tensor, action: Tensor) -> Tensor:
    return (values.logsumexp(-1) - values.gather(-1, action[:, None]).squeeze(-1)).mean()


@program(normal(512, 2048), normal(512, 2048), mask(512, 2048), gradients=True)
def odds_ratio_preference_loss(chosen: Tensor, rejected: Tensor, kept: Tensor) -> Tensor:
    good = -(F.softplus(chosen) * kept).sum(1) / kept.sum(1) - 0.1
    bad = -(F.softplus(rejected) * kept).sum(1) / kept.sum(1) - 0.1
    odds = (good - bad) - (torch.log1p(-good.exp()) - torch.log1p(-bad.exp()))
    return -(good + 0.1 * F.logsigmoid(odds)).mean()


@program(normal(4096), normal(4096), gradients=True)
def reward_model_pairs(chosen: Tensor, rejected: Tensor) -> tuple[Tensor, Tensor]:
    return -F.logsigmoid(chosen - rejected - 0.1).mean(), (chosen > rejected).to(chosen.dtype).mean()
