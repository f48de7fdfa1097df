"""Kernels of TorchInductor's, from the text that they have in a report, as a compiler wants them.

That of a Triton kernel is a module that TorchInductor executes, and its decorator says what the arguments are. It is
only executed where snippets are run. C++ is compiled with the flags that TorchInductor chooses on this machine.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

from compiler.runtime.triton.text import TritonKernel, WrongKernel, execute


def read_kernel(source: str, name: str, file: str) -> TritonKernel:
    """The kernel in the first of the configurations among which TorchInductor chooses by time. Raises `WrongKernel`."""
    from torch._inductor.runtime import triton_helpers

    # The text looks for a GPU, which compiling does not need.
    with mock.patch.object(triton_helpers, "set_driver_to_gpu", lambda: None):
        found: Any = execute(source, file, name).get(name)
    if not hasattr(found, "triton_meta") or not getattr(found, "configs", None):
        raise WrongKernel(f"The text is no Triton kernel {name} as TorchInductor writes them.")
    meta, config = found.triton_meta, found.configs[0]
    constants = {**meta.get("constants", {}), **config.kwargs}
    signature = {
        argument: "constexpr" if argument in constants else kind for argument, kind in meta["signature"].items()
    }
    notes = []
    if len(found.configs) > 1:
        choices = f"TorchInductor chooses among {len(found.configs)} configurations by time, on a GPU."
        notes.append(f"{choices} This is the first: {config}.")
    return TritonKernel(
        function=found.fn,
        signature=signature,
        constants=constants,
        attributes=next(iter(meta.get("configs") or ({},))),
        options={"num_warps": config.num_warps, "num_stages": config.num_stages},
        notes=notes,
    )


def cpp_command() -> list[str]:
    """The C++ compiler as TorchInductor calls it for a kernel, without what makes a library of it."""
    from torch._inductor.cpp_builder import CppTorchDeviceOptions
    from torch._inductor.cpu_vec_isa import pick_vec_isa

    options = CppTorchDeviceOptions(vec_isa=pick_vec_isa(), device_type="cpu")
    return [
        options.get_compiler(),
        *(f"-{flag}" for flag in options.get_cflags() if flag not in ("shared", "Wall", "pedantic", "g1")),
        *(f"-D{name.strip()}" for name in options.get_definitions()),
        *(f"-I{folder}" for folder in options.get_include_dirs()),
        *(part for text in options.get_passthrough_args() for part in text.split()),
    ]
