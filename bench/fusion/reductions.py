"""Programs of the table: reductions, norms, softmax and losses."""

from __future__ import annotations

import torch
import torch.nn.functional as F

from bench.fusion.program import Program, index, tensor, weight

Tensor = torch.Tensor


def softmax(x: Tensor) -> Tensor:
    e = torch.exp(x - x.max(dim=-1, keepdim=True).values)
    return e / e.sum(dim=-1, keepdim=True)


def rms_norm(x: Tensor, w: Tensor) -> Tensor:
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * w


def layer_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.layer_norm(x, (x.shape[-1],), w, b)


def batch_norm(x: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return F.batch_norm(x, None, None, w, b, training=True)


def batch_norm_updating(x: Tensor, mean: Tensor, var: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """Training with running statistics, which are given and returned."""
    mean, var = mean.clone(), var.clone()
    return F.batch_norm(x, mean, var, w, b, training=True), mean, var


def batch_norm_trained(x: Tensor, mean: Tensor, var: Tensor, w: Tensor, b: Tensor) -> Tensor:
    return torch.relu(F.batch_norm(x, mean, var, w, b))


def add_norm(x: Tensor, y: Tensor, w: Tensor, b: Tensor) -> tuple[Tensor, Tensor]:
    total = x + y
    return total, F.gelu(layer_norm(total, w, b))


def log_likelihood(x: Tensor, target: Tensor) -> Tensor:
    return F.nll_loss(F.log_softmax(x, -1), target)


def qk_norm(x: Tensor, w: Tensor) -> Tensor:
    """A norm of each head of a projection, and the heads brought in front."""
    heads = x.unflatten(-1, (16, -1))
    return rms_norm(heads, w).transpose(1, 2)


def focal_loss(x: Tensor, y: Tensor) -> Tensor:
    loss = F.binary_cross_entropy_with_logits(x, y, reduction="none")
    return ((1 - torch.exp(-loss)) ** 2 * loss).mean()


def entropy(x: Tensor) -> Tensor:
    logs = torch.log_softmax(x, -1)
    return -(logs.exp() * logs).sum(-1)


def cross_entropy_z(x: Tensor, target: Tensor) -> Tensor:
    """With what keeps the sum of exponentials near one."""
    total = torch.logsumexp(x, -1)
    picked = x.gather(1, target[:, None]).squeeze(1)
    return (total - picked + 1e-4 * total.square()).mean()


def softmax_with_sink(x: Tensor, sink: Tensor) -> Tensor:
    """Attention that may look at nothing: one more score a row, whose share is dropped."""
    scores = torch.cat((x * 0.125, sink[:, None].expand(-1, 1)), -1)
    return torch.softmax(scores, -1)[:, :-1]


def distillation(student: Tensor, teacher: Tensor) -> Tensor:
    return F.kl_div(F.log_softmax(student, -1), F.softmax(teacher, -1), reduction="batchmean")


def contrastive(x: Tensor) -> tuple[Tensor, Tensor]:
    """Softmax of a matrix of similarities along both axes."""
    return torch.log_softmax(x, 0), torch.log_softmax(x, 1)


def standardise(x: Tensor) -> Tensor:
    return (x - x.mean(0)) / (x.std(0) + 1e-5)


def gradient_norm(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    return torch.sqrt(sum(g.square().sum() for g in (a, b, c)))  # type: ignore[arg-type]


def clip_gradient(g: Tensor) -> Tensor:
    return g * torch.clamp(1.0 / (g.norm() + 1e-6), max=1.0)


ROWS = tensor("n m")
IMAGES = tensor("32 c w w")
CHANNEL = tensor("c")
PARAMETERS = (weight("m"), weight("m"))

PROGRAMS = (
    Program("sum of everything", lambda x: x.sum(), (ROWS,)),
    Program("sum of rows", lambda x: x.sum(1), (ROWS,)),
    Program("sum of columns", lambda x: x.sum(0), (ROWS,)),
    Program("sums over two axes", lambda x: (x.sum(0), x.sum(1)), (ROWS,)),
    Program("means over two axes of what is computed", lambda x: (x.exp().mean(0), x.exp().mean(1)), (ROWS,)),
    Program("largest over three axes", lambda x: (x.amax(0), x.amax(1), x.amax()), (ROWS,)),
    Program("max, mean and mean square", lambda x: (x.abs().max(), x.abs().mean(), x.square().mean()), (ROWS,)),
    Program("sums of rows with different ends",
            lambda x: (x.sum(1).sqrt(), x.amax(1) * 2, x.square().mean(1).rsqrt()), (ROWS,)),
    Program("variance and mean", lambda x: torch.var_mean(x, -1), (ROWS,)),
    Program("standard deviation", lambda x: x.std(-1), (ROWS,)),
    Program("variance of columns", lambda x: x.var(0), (ROWS,)),
    Program("standardised columns", standardise, (ROWS,)),
    Program("softmax by hand", softmax, (ROWS,)),
    Program("softmax of rows", lambda x: torch.softmax(x, -1), (ROWS,)),
    Program("softmax of wide rows", lambda x: torch.softmax(x, -1), (tensor("512 131072"),)),
    Program("scaled by a sum of four", lambda x, w: x * w.square().sum().rsqrt(), (ROWS, tensor("4"))),
    Program("softmax of columns", lambda x: torch.softmax(x, 0), (ROWS,)),
    Program("softmax backward", lambda x: torch.softmax(x, -1), (weight("n m"),)),
    Program("softmax along both axes", contrastive, (ROWS,)),
    Program("scaled softmax and mask", lambda x, m: torch.softmax(x * 0.125 + m, -1),
            (tensor("b h 256 256"), tensor("256 256"))),
    Program("log of a sum of exponentials", lambda x: torch.logsumexp(x, -1), (ROWS,)),
    Program("entropy", entropy, (ROWS,)),
    Program("log softmax and likelihood", log_likelihood, (tensor("n v"), index("n", "v"))),
    Program("cross entropy", lambda x, i: F.cross_entropy(x, i), (tensor("n v"), index("n", "v"))),
    Program("cross entropy without reduction",
            lambda x, i: F.cross_entropy(x, i, reduction="none"), (tensor("n v"), index("n", "v"))),
    Program("cross entropy, backward", lambda x, i: F.cross_entropy(x, i), (weight("n v"), index("n", "v"))),
    Program("cross entropy with smoothing",
            lambda x, i: F.cross_entropy(x, i, label_smoothing=0.1), (tensor("n v"), index("n", "v"))),
    Program("cross entropy with a penalty of the sum", cross_entropy_z, (tensor("n v"), index("n", "v"))),
    Program("entropy of one long row", entropy, (tensor("1 32768"),)),
    Program("softmax with a sink", softmax_with_sink, (ROWS, tensor("n"))),
    Program("mean squared error", lambda x, y: F.mse_loss(x, y), (ROWS, ROWS)),
    Program("smooth L1 loss", lambda x, y: F.smooth_l1_loss(x, y), (ROWS, ROWS)),
    Program("mean squared error, backward", lambda x, y: F.mse_loss(x, y), (weight("n m"), ROWS)),
    Program("focal loss", focal_loss, (ROWS, tensor("n m"))),
    Program("distillation", distillation, (ROWS, ROWS)),
    Program("cosine similarity", lambda x, y: F.cosine_similarity(x, y, -1), (ROWS, ROWS)),
    Program("normalised rows", lambda x: F.normalize(x, dim=-1), (ROWS,)),
    Program("gradient norm", gradient_norm, (tensor("n m"), tensor("m"), tensor("k m"))),
    Program("clipped gradient", clip_gradient, (ROWS,)),
    Program("layer norm", layer_norm, (ROWS, tensor("m"), tensor("m"))),
    Program("layer norm, backward", layer_norm, (weight("n m"), *PARAMETERS)),
    Program("RMS norm", rms_norm, (ROWS, tensor("m"))),
    Program("RMS norm, backward", rms_norm, (weight("n m"), weight("m"))),
    Program("residual, layer norm, GELU", add_norm, (ROWS, ROWS, tensor("m"), tensor("m"))),
    Program("norm of heads, transposed", qk_norm, (tensor("b l 1024"), tensor("64"))),
    Program("group norm and SiLU", lambda x, w, b: F.silu(F.group_norm(x, 4, w, b)), (IMAGES, CHANNEL, CHANNEL)),
    Program("group norm, backward", lambda x, w, b: F.group_norm(x, 4, w, b),
            (weight("32 c w w"), weight("c"), weight("c"))),
    Program("instance norm", lambda x: F.instance_norm(x), (IMAGES,)),
    Program("batch norm, trained", batch_norm_trained,
            (IMAGES, CHANNEL, tensor("c"), CHANNEL, CHANNEL)),
    Program("batch norm in training", batch_norm, (IMAGES, CHANNEL, CHANNEL)),
    Program("batch norm in training, updating", batch_norm_updating, (IMAGES, *[CHANNEL] * 4)),
    Program("batch norm, backward", batch_norm, (weight("32 c w w"), weight("c"), weight("c"))),
)  # fmt: skip
