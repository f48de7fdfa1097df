"""A C++ kernel's assembly, for the processor of this machine, and what the compiler made vectors of.

The assembly is the compiler's own text (`-S`), made with the flags that kernels are compiled with. Its `.loc` lines
name the innermost location alone, which for most of a kernel is one of our headers; the debug information of the object
file has the calls as well, and `objdump --inlines` tells them instruction by instruction, in the same order.
"""

from __future__ import annotations

import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path

from compiler.options import KernelToCompile
from compiler.report import CodeLevel, MachineCode, VectorLoop, VectorRemark
from compiler.runtime.cpp.compiler import INCLUDE, CompilationFailed, compiler, flags, is_gcc
from compiler.runtime.cpp.instruction_sets import architecture
from compiler.runtime.triton import code_texts as texts
from compiler.runtime.triton.code_texts import SourceFile

_FILE = "kernel.cpp"
_SECONDS = 120
#: Loops and remarks beyond these are left out: a kernel has as many when the compiler has written one out many times.
MOST_LOOPS, MOST_REMARKS = 200, 200


def cpp_levels(source: str, wanted: KernelToCompile) -> MachineCode:
    """Raises `CompilerMissing` and `CompilationFailed`."""
    result = MachineCode(kernel=wanted.name, language="cpp", target="host")
    is_x86 = architecture() == "x86_64"
    with tempfile.TemporaryDirectory(prefix="fusionscope-") as name:
        folder = Path(name)
        (folder / _FILE).write_text(source)
        # Of version 5 some assemblers and readers disagree on which file is the first.
        command = [*_command(wanted), "-g1", "-gdwarf-4"]
        remarks = [f"-fopt-info-vec-optimized-missed={folder / 'remarks'}"] if is_gcc() else []
        syntax = ["-masm=intel"] if is_x86 else []
        _run([*command, *syntax, *remarks, "-S", str(folder / _FILE), "-o", str(folder / "kernel.s")], name)
        assembly = (folder / "kernel.s").read_text()
        _run([command[0], "-c", str(folder / "kernel.s"), "-o", str(folder / "kernel.o")], name)
        file = SourceFile.of(_FILE, source)
        calls = _lines_of_calls(folder / "kernel.o", file)
        said = (folder / "remarks").read_text() if (folder / "remarks").exists() else ""
    located = texts.of_assembly(assembly, file, "#" if is_x86 else "//")
    level = texts.level("assembly", _with_calls(located, calls))
    result.levels.append(level)
    if not calls:
        result.notes.append("objdump is not installed: instructions of inlined functions are linked to no line.")
    result.loops = list(_loops(level))[:MOST_LOOPS]
    result.remarks = list(_remarks(said))[:MOST_REMARKS]
    if not remarks:
        result.notes.append("Only GCC reports which loops it vectorised.")
    if level.cut is not None:
        result.notes.append("Only loops of the shown text are listed.")
    return result


def _command(wanted: KernelToCompile) -> list[str]:
    """The compiler with what it is told of a kernel of ours, or of TorchInductor's."""
    if wanted.language == "inductor":
        from compiler.peer.kernel_text import cpp_command

        return cpp_command()
    return [compiler(), *(flag for flag in flags() if flag != "-shared"), f"-I{INCLUDE}"]


def _run(command: list[str], folder: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    if done.returncode != 0:
        said = done.stderr.replace(folder, "").strip()[:2000]
        raise CompilationFailed(f"{Path(command[0]).name} could not compile the kernel:\n{said}")


def _lines_of_calls(binary: Path, file: SourceFile) -> dict[str, list[tuple[bool, int | None]]]:
    """Of every function its instructions in order: whether it does nothing, and its line of the source."""
    program = shutil.which("objdump")
    if program is None:
        return {}
    command = [program, "-d", "-l", "--inlines", "--no-show-raw-insn", str(binary)]
    text = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False).stdout
    found: dict[str, list[tuple[bool, int | None]]] = {}
    function: list[tuple[bool, int | None]] = []
    locations: list[tuple[str, int]] = []
    current: int | None = None
    for line in text.splitlines():
        if head := re.match(r"^[0-9a-f]+ <(.+)>:$", line):
            function = found.setdefault(head[1], [])
            current = None
        elif instruction := re.match(r"^\s+[0-9a-f]+:\t(.*)$", line):
            if locations:
                current = file.line_of(tuple(line for location in locations for line in file.locations(*location)))
                locations = []
            function.append((re.search(r"\bnop|xchg +%?ax, ?%?ax|^data16", instruction[1]) is not None, current))
        elif location := re.match(r"^(?:\s*\(?inlined by\)? )?(.+?):(\d+)(?: \(.*\))?$", line):
            locations.append((location[1], int(location[2])))
    return found


def _with_calls(located: texts.Located, calls: dict[str, list[tuple[bool, int | None]]]) -> texts.Located:
    """The same lines, with those of the calls where a function has as many instructions in both; what the assembler
    puts in to align loops is in one of them only. Functions of our headers come behind those of the kernel."""
    functions: list[list[tuple[str, int | None]]] = []
    function: list[tuple[str, int | None]] = []
    name = ""
    for text, line in (*located, ("\0:", None)):
        label = re.match(r"^([^\s.][^:]*):", text)
        if label is None:
            function.append((text, line))
            continue
        functions.append(_renumbered(function, [one for is_nothing, one in calls.get(name, ()) if not is_nothing]))
        function, name = [(text, line)], label[1]
    functions.sort(key=lambda lines: all(line is None for _, line in lines))
    return [line for lines in functions for line in lines]


def _renumbered(function: list[tuple[str, int | None]], lines: list[int | None]) -> list[tuple[str, int | None]]:
    positions = [position for position, (text, _) in enumerate(function) if _mnemonic(text) not in ("", "nop")]
    if len(positions) == len(lines):
        for position, line in zip(positions, lines, strict=True):
            function[position] = (function[position][0], line)
    return function


def _mnemonic(line: str) -> str:
    """The instruction of a line, "" for a label; what is before it (`rep`, `lock`) is passed over."""
    found = re.match(r"^\s+(?:(?:rep\w*|lock|notrack)\s+)?([a-z][\w.]*)", line)
    return found[1] if found else ""


def _loops(level: CodeLevel) -> Iterator[VectorLoop]:
    """The innermost ones: from a label to a jump back to it, with no other such jump between. Those of library code,
    which come from no line of the source, are left out."""
    lines = level.text.splitlines()
    sources = dict(level.lines)
    labels = {found[1]: number for number, line in enumerate(lines, 1) if (found := re.match(r"^(\.\w+):", line))}
    jumps = ((number, re.search(r"(\.L\w+)$", line)) for number, line in enumerate(lines, 1) if _is_jump(line))
    back = sorted(
        (labels[found[1]], number) for number, found in jumps if found and labels.get(found[1], number) < number
    )
    for first, last in back:
        if any(first <= other and end <= last and (other, end) != (first, last) for other, end in back):
            continue
        own = sorted({sources[number] for number in range(first, last + 1) if number in sources})
        if not own:
            continue
        packed, scalar, bits = _counted(lines[first - 1 : last])
        yield VectorLoop(
            first=first,
            last=last,
            source_lines=own,
            packed=packed,
            scalar=scalar,
            bits=bits,
        )


def _is_jump(line: str) -> bool:
    return re.match(r"^\s+(?:j\w+|b(?:\.\w+)?|cbn?z|tbn?z)\s", line) is not None


def _counted(body: Iterable[str]) -> tuple[int, int, int]:
    """Instructions on vectors, floating-point ones on one number, and bits of the widest vector."""
    packed = scalar = bits = 0
    for line in body:
        name = _mnemonic(line)
        widest = _bits(line)
        is_scalar = re.fullmatch(r"(?!.*broadcast)\w*(?:ss|sd)(?:\d?si|2s[sd])?", name) and widest
        if is_scalar or re.search(r"^f\w+\s+[sdh]\d", line.strip()):
            scalar += 1
        elif widest:
            packed += 1
            bits = max(bits, widest)
    return packed, scalar, bits


def _bits(line: str) -> int:
    """Of the widest vector register that the line names."""
    for pattern, width in (
        (r"\bzmm\d", 512),
        (r"\bymm\d", 256),
        (r"\bxmm\d|\bv\d+\.\d+[bhsd]\b|\bz\d+\.[bhsd]\b", 128),
    ):
        if re.search(pattern, line):
            return width
    return 0


def _remarks(said: str) -> Iterator[VectorRemark]:
    """Each line's first reason, and whether any version of its loop became vectors. What else was missed, such as a
    call that may write anything, is no word about a loop."""
    by_line: dict[int, tuple[bool, str]] = {}
    for found in re.finditer(rf"^.*/{re.escape(_FILE)}:(\d+):\d+: (optimized|missed): +(.*)$", said, re.MULTILINE):
        line, is_made, message = int(found[1]), found[2] == "optimized", found[3].strip()
        if not is_made and not message.startswith("not vectorized"):
            continue
        known = by_line.get(line)
        if known is None or (is_made and not known[0]):
            by_line[line] = (is_made, message)
    for line, (is_made, message) in sorted(by_line.items()):
        yield VectorRemark(line=line, is_vectorised=is_made, message=message.rstrip(".")[:300])
