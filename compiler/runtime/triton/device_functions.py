"""Functions of libdevice, CUDA's library of mathematics, one file each.

Triton takes every function from one file of half a megabyte; to read that takes as long as all the rest of a small
kernel's compilation. What it takes from there asks at every step whether denormal numbers count as zero
(`__nvvm_reflect("__CUDA_FTZ")`), and only the last of LLVM's passes hears the answer: all passes before it work on both
ways of each step, once for every call in an unrolled kernel.

Here the functions that kernels call are taken out of libdevice all at once, which takes a tenth of a second, once for a
machine, and are kept as LLVM's assembly text, which Triton reads as it reads libdevice. Most get the answers that
Triton's passes would give, and are simplified by the same passes: what a kernel then computes is the same instructions.
Some branch to what few numbers need, and LLVM, told the answers early, would rather compute both ways in every lane, in
twice the registers (measured on an H200: eight sines took 1.6 times as long): those stay as they are. Sine, cosine and
tangent, whose way for large numbers is the longest, are split: a kernel holds that way once, as a function to call.
"""

from __future__ import annotations

import functools
import hashlib
import re
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from compiler.runtime.disk_cache import cache_directory, is_whole, write_whole

#: Functions of one float32, and of two, by their names in libdevice.
_ONE = """acosf acoshf asinf asinhf atanf atanhf ceilf cosf coshf erfcf erff exp2f expf expm1f floorf lgammaf log10f
log1pf log2f logf rintf rsqrtf sinf sinhf sqrtf tanf tanhf truncf""".split()
_TWO = "atan2f copysignf fast_fdividef fmodf hypotf powf".split()

#: How many float32 each function takes, by its symbol; it gives one.
ARGUMENTS = {f"__nv_{name}": 1 for name in _ONE} | {f"__nv_{name}": 2 for name in _TWO}

#: Those that stay as they are, as the others would get slower kernels.
AS_THEY_ARE = frozenset(f"__nv_{name}" for name in "acoshf asinhf lgammaf log10f log2f logf powf".split())

#: Those that take another way, ten times as long, from this magnitude on: few numbers of few programs go there, and a
#: kernel that holds it once for each of its elements takes three times as long to compile.
RARE_FROM = dict.fromkeys(("__nv_sinf", "__nv_cosf", "__nv_tanf"), 105615.0)

#: What the functions ask: whether denormal numbers are zero (Triton says yes), and whether roots are to be exact (no).
QUESTIONS = {"__CUDA_FTZ", "__CUDA_PREC_SQRT"}

#: The answer to a question, by its letter that differs.
_ANSWER = """
llvm.func @__nvvm_reflect(%question: !llvm.ptr) -> i32 attributes {always_inline} {
  %address = llvm.getelementptr %question[7] : (!llvm.ptr) -> !llvm.ptr, i8
  %letter = llvm.load %address : !llvm.ptr -> i8
  %f = llvm.mlir.constant(70 : i8) : i8
  %is_f = llvm.icmp "eq" %letter, %f : i8
  %answer = llvm.zext %is_f : i1 to i32
  llvm.return %answer : i32
}
"""

_QUESTION = "declare i32 @__nvvm_reflect(ptr)\n"

#: Before the names of the functions that call libdevice's, and become them; and of what they call in rare cases.
_WHOLE, _RARE = "whole_", "rare_"

_lock = threading.Lock()


class UnknownLibrary(Exception):
    """This libdevice, or this Triton, is not of the kind that is known here."""


def function_files(symbols: Iterable[str]) -> list[Path]:
    """A file for each of these functions of `ARGUMENTS`. Raises UnknownLibrary."""
    folder = cache_directory("device") / _key()
    files = []
    for symbol in symbols:
        files.append(file := folder / f"{symbol}.ll")
        if not is_whole(file):
            write_whole(file, function_texts()[symbol].encode())
    return files


def function_texts() -> dict[str, str]:
    """LLVM's text of each function of `ARGUMENTS`, made once in a process. Raises UnknownLibrary."""
    with _lock:
        made = _made()
    if isinstance(made, UnknownLibrary):
        raise made
    return made


@functools.cache
def _made() -> dict[str, str] | UnknownLibrary:
    """The texts; or what speaks against them, which will not change."""
    try:
        linked, text = _simplified(libdevice())
    except Exception as error:  # Triton says in many ways what it does not understand
        return UnknownLibrary(str(error))
    asked = set(re.findall(r'c"(\w+)\\00"', linked))
    if not asked <= QUESTIONS:
        return UnknownLibrary(f"it asks {', '.join(sorted(asked - QUESTIONS))}")
    blocks, rest = _parts(linked)
    simplified, rest_of_simplified = _parts(text)
    wanted = {f"{_WHOLE}{symbol}" for symbol in ARGUMENTS.keys() - AS_THEY_ARE}
    if simplified.keys() != wanted | {f"{_RARE}{symbol}" for symbol in RARE_FROM}:
        return UnknownLibrary("its functions call others that stay")
    if any(f"@{other}(" in blocks[symbol].partition("\n")[2] for symbol in AS_THEY_ARE for other in blocks):
        return UnknownLibrary("its functions call others")
    return {
        symbol: _file(blocks[symbol].replace("define internal ", "define "), [*rest, _QUESTION])
        if symbol in AS_THEY_ARE
        else _file(_with_rare(symbol, simplified), rest_of_simplified)
        for symbol in ARGUMENTS
    }


def _with_rare(symbol: str, simplified: dict[str, str]) -> str:
    return simplified.get(f"{_RARE}{symbol}", "") + simplified[f"{_WHOLE}{symbol}"].replace(f"@{_WHOLE}", "@")


def _parts(text: str) -> tuple[dict[str, str], list[str]]:
    """The functions of a module by their names, and its other lines; without comments, and without the answers."""
    definition = re.compile(r"^define [^\n]*?@(\w+)\(.*?^}\n", re.MULTILINE | re.DOTALL)
    functions = {found[1]: found[0] for found in definition.finditer(text) if found[1] != "__nvvm_reflect"}
    rest = re.sub(r"^;.*\n|^\n", "", definition.sub("", text), flags=re.MULTILINE)
    return functions, rest.splitlines(keepends=True)


def _file(function: str, rest: Iterable[str]) -> str:
    """A function with what else there is in its module, but for declarations that it does not use."""
    declared = re.compile(r"declare .*@([\w.]+)\(")
    needed = (line for line in rest if (found := declared.match(line)) is None or f"@{found[1]}(" in function)
    return "".join(needed) + function


def _simplified(library: Path) -> tuple[str, str]:
    """The functions as they stand in the library, and after LLVM's passes over those that call them."""
    from triton._C.libtriton import ir, llvm, nvidia  # type: ignore[attr-defined]

    dialects = ir.context()
    ir.load_dialects(dialects)
    nvidia.load_dialects(dialects)
    llvm.init_targets()
    context: Any = llvm.context()
    with tempfile.TemporaryDirectory(prefix="fusionscope-") as folder:
        path = Path(folder) / "calls.mlir"
        path.write_text(_calls())
        module = llvm.to_module(ir.parse_mlir_module(str(path), dialects), context)
    llvm.attach_datalayout(module, "nvptx64-nvidia-cuda", "sm_80", "")
    llvm.link_extern_libs(module, [str(library)])
    linked = str(module)
    llvm.optimize_module(module, llvm.OPTIMIZE_O3)
    return linked, str(module)


def _calls() -> str:
    """A module that wants all functions of libdevice, with a function for each that is to be simplified."""
    texts = [_ANSWER]
    for symbol, count in ARGUMENTS.items():
        types = ", ".join(["f32"] * count)
        texts.append(f"llvm.func @{symbol}({types}) -> f32\n")
        if symbol in RARE_FROM:
            texts.append(_split(symbol))
        elif symbol not in AS_THEY_ARE:
            passed = ", ".join(f"%{position}" for position in range(count))
            texts.append(f"""
llvm.func @{_WHOLE}{symbol}({passed.replace(",", ": f32,")}: f32) -> f32 attributes {{always_inline}} {{
  %result = llvm.call @{symbol}({passed}) : ({types}) -> f32
  llvm.return %result : f32
}}
""")
    return f"module {{{''.join(texts)}}}\n"


def _split(symbol: str) -> str:
    """A function that has the usual way of `symbol` alone, by the very question that `symbol` asks, and calls one that
    has both for the rest."""
    return f"""
llvm.func @{_RARE}{symbol}(%x: f32) -> f32 attributes {{no_inline}} {{
  %result = llvm.call @{symbol}(%x) : (f32) -> f32
  llvm.return %result : f32
}}
llvm.func @{_WHOLE}{symbol}(%x: f32) -> f32 attributes {{always_inline}} {{
  %magnitude = llvm.call_intrinsic "llvm.nvvm.fabs.ftz.f32"(%x) : (f32) -> f32
  %limit = llvm.mlir.constant({RARE_FROM[symbol]} : f32) : f32
  %is_rare = llvm.fcmp "oge" %magnitude, %limit : f32
  llvm.cond_br %is_rare weights([1, 1000]), ^rare, ^usual
^rare:
  %rare = llvm.call @{_RARE}{symbol}(%x) : (f32) -> f32
  llvm.br ^end(%rare : f32)
^usual:
  %usual = llvm.call @{symbol}(%x) : (f32) -> f32
  llvm.br ^end(%usual : f32)
^end(%result: f32):
  llvm.return %result : f32
}}
"""


def libdevice() -> Path:
    """The file that Triton would link a kernel with."""
    from triton import knobs
    from triton.backends.nvidia import compiler

    return Path(knobs.nvidia.libdevice_path or Path(compiler.__file__).parent / "lib" / "libdevice.10.bc")


@functools.cache
def _key() -> str:
    """What the texts follow from."""
    import triton

    version = triton.__version__
    return hashlib.sha256(f"{version}\n{_calls()}".encode() + libdevice().read_bytes()).hexdigest()[:32]
