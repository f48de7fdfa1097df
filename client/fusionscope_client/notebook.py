"""`%%fusion`: the text of a cell is explored, and its report is the cell's result.

    %load_ext fusionscope_client
    %%fusion --target sm_90 --peer
    ...

The address and the token are those of the environment (FUSIONSCOPE_URL, FUSIONSCOPE_TOKEN), or `--service`.
"""

from __future__ import annotations

from typing import Any

from IPython.core.magic import Magics, cell_magic, magics_class
from IPython.core.magic_arguments import argument, magic_arguments, parse_argstring

from fusionscope_client.client import Fusionscope
from fusionscope_client.errors import FusionscopeError


@magics_class
class FusionMagics(Magics):
    """The cell magic."""

    @magic_arguments()
    @argument("--service", metavar="ADDRESS", help="address of the service; else FUSIONSCOPE_URL, or this machine's")
    @argument("--target", help="GPU that Triton kernels are generated for, such as sm_90")
    @argument("--device", help="cpu or cuda")
    @argument("--entry", help="the function or module to explore")
    @argument("--peer", action="store_true", help="compile and time with TorchInductor too")
    @argument("--training", action="store_true", help="capture the backward graph")
    @argument("--dynamic", action="store_true", help="leave all sizes open")
    @argument("--no-timing", action="store_true", help="time nothing")
    @argument("--name", "-o", metavar="NAME", help="the variable that the report is kept in")
    @cell_magic
    def fusion(self, line: str, cell: str) -> Any:
        """Explore the text of this cell."""
        wanted = parse_argstring(self.fusion, line)
        options: dict[str, Any] = {
            name: getattr(wanted, name)
            for name in ("target", "device", "entry", "peer", "training", "dynamic")
            if getattr(wanted, name)
        }
        if wanted.no_timing:
            options["timing"] = {"enabled": False}
        try:
            report = Fusionscope(wanted.service).explore(cell, **options)
        except FusionscopeError as problem:
            print(f"{type(problem).__name__}: {problem}")
            return None
        if wanted.name and self.shell is not None:
            self.shell.user_ns[wanted.name] = report
        return report
