"""One small program a kind of graph break: `f`, what it needs, and the line of the program at which tracing stops."""

from __future__ import annotations

_HEAD = """import torch

{before}
@torch.compile
def f(x):
    y = x.sin()
    {body}
    return y.cos()


f({argument})
"""


def program(body: str, before: str = "", argument: str = "torch.ones(8)") -> str:
    """The program whose function holds `body`, which may be several lines, between two operators."""
    return _HEAD.format(body=body.replace("\n", "\n    "), before=before, argument=argument)


#: By kind. Each breaks in every release of PyTorch that is supported.
BROKEN: dict[str, str] = {
    "explicit": program("torch._dynamo.graph_break()"),
    "disabled": program("y = outside(y)", "@torch.compiler.disable\ndef outside(y):\n    return y + 1\n"),
    "data_dependent_branch": program("if y.sum() > 0:\n    y = y + 1"),
    "scalar_read": program("y = y * y.max().item()"),
    "data_dependent_shape": program("y = y[y > 0]"),
    "print": program("print('half way')"),
    "generator": program("y = y + next(numbers)", "numbers = (n for n in range(9))\n"),
    "random_state": program("with torch.random.fork_rng():\n    torch.manual_seed(0)\n    y = y + torch.rand(8)"),
    "context_manager": program("with lock:\n    y = y + 1", "import threading\nlock = threading.Lock()\n"),
    "exception": program("raise ValueError('no')"),
    "hook": program(
        "y = layer(y)",
        "layer = torch.nn.Linear(8, 8)\nlayer.register_full_backward_hook(lambda module, given, got: None)\n",
    ),
    "autograd_function": program(
        "y = Twice.apply(y)",
        "class Twice(torch.autograd.Function):\n    @staticmethod\n    def forward(ctx, v):\n        return v * 2\n"
        "    @staticmethod\n    def jvp(ctx, v):\n        return v * 2\n",
        "torch.ones(8, requires_grad=True)",
    ),
    "autograd": program("y.requires_grad_()"),
    "tensor_kind": program("y = y.to_sparse().to_dense()"),
    "numpy": program("y = y + torch.from_numpy(np.char.str_len(np.array(['a'])))", "import numpy as np\n"),
    "operator": program(
        "y = torch.ops.breaking.twice(y)",
        "library = torch.library.Library('breaking', 'DEF')\nlibrary.define('twice(Tensor x) -> Tensor')\n"
        "library.impl('twice', lambda x: x * 2, 'CPU')\n",
    ),
    "higher_order": program(
        "y = torch.utils.checkpoint.checkpoint(inner, y, use_reentrant=False)",
        "import torch.utils.checkpoint\n\ndef inner(v):\n    kept.append(v)\n    return v.exp()\n\nkept = []\n",
    ),
    "side_effect": program("holder.value = y", "import types\nholder = types.MappingProxyType({})\n"),
    "python_feature": program("class Inner:\n    pass"),
    "c_function": program("y = y + time.perf_counter()", "import time\n"),
    "python_object": program("y = y + len(str(day))", "import datetime\nday = datetime.date.today()\n"),
    "unsupported_call": program("y = y + int(y.share_memory_().is_shared())"),
}
