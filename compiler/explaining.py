"""`fusionscope.explain(function)(*args)`: the report of one call of a function of this process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from compiler.capture.program.called import Called, computes_nothing
from compiler.options import Options
from compiler.pipeline import OnStage, explore
from compiler.report import Report


def explain(function: Callable[..., Any], *, on_stage: OnStage | None = None, **options: Any) -> Callable[..., Report]:
    """What, called with the arguments of `function`, explores that call and gives its report.

    `function` is a function or a module. `options` are those of `compiler.options.Options`; by default it is compiled
    for the device that its tensors are on. Lines of the report are those of the file that `function` is of, which is
    the report's `source`. The arguments are copied: a call that changes them changes copies. Code that torch has
    compiled before in this process is compiled again when it is called next, as after `torch.compiler.reset()`.

    Raises `TypeError` for what cannot be called, or computes nothing when it is called, as an `async def`; and
    `ValueError` for options that are not valid. What goes wrong in the call is the report's `error`.
    """
    if not callable(function):
        raise TypeError(f"explain() takes a function or a module, not a {type(function).__name__}")
    if computes_nothing(function):
        raise TypeError(
            "explain() takes a function that computes when it is called, and this one only makes a coroutine or a "
            "generator: put what it computes into a plain function, and pass that"
        )
    if options.get("sweep") is not None:
        raise TypeError("a sweep changes sizes in the text of a program: pass that text to fusionscope.explore()")

    def explained(*args: Any, **kwargs: Any) -> Report:
        called = Called.of(function, args, kwargs)
        chosen = Options.named({"device": called.device.type, **options})
        with called.as_snippet():
            return explore(called.source, chosen, on_stage, called=called)

    return explained
