"""The text of each level of code, and the source line of each of its lines.

Every level says in a way of its own where an instruction comes from: MLIR by `loc(...)`, LLVM by `!dbg`, assemblers by
`.loc`, NVIDIA's disassembler by comments. All of that becomes a pair of lines and is left out of the text. Where a
function was inlined there is a chain of locations, and `SourceFile.line_of` says which of them counts. Lines that
compilers number 0 belong to none.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import PurePath

from compiler.report import CodeLevel
from compiler.report.machine_code import LevelName
from compiler.wording import counted

#: A level has no more than this of characters: a reader scrolls through less, and a page draws it in one piece.
MOST_CHARACTERS = 400_000
#: A line, and the source's line that it comes from.
Located = Iterable[tuple[str, int | None]]
#: Lines of the source, from that of an inlined function to that of the kernel which calls it.
Chain = tuple[int, ...]


@dataclass(frozen=True)
class SourceFile:
    """The kernel's source as debug information names it. `calls` are lines that do nothing but call a function of the
    source, whose own lines say more: the parts of a kernel that computes several things side by side."""

    name: str
    calls: frozenset[int] = frozenset()

    @classmethod
    def of(cls, name: str, text: str) -> SourceFile:
        """Of a source in Python or C++."""
        functions = set(_DEFINED.findall(text))
        called = ((number, _CALLED.match(line)) for number, line in enumerate(text.splitlines(), start=1))
        return cls(name, frozenset(number for number, found in called if found and found[1] in functions))

    def line_of(self, chain: Chain) -> int | None:
        """The outermost line that is more than a call: what `tl.sum` or a function of two numbers does belongs to the
        line that wants its value."""
        return next((line for line in reversed(chain) if line not in self.calls), chain[-1] if chain else None)

    def locations(self, name: str, line: int) -> Chain:
        """A location as a chain: none where it is in another file."""
        return (line,) if line and PurePath(name).name == self.name else ()


_DEFINED = re.compile(r"^(?:def|(?:static |inline )*void) (\w+)\(", re.MULTILINE)
_CALLED = re.compile(r"^\s+(\w+)\(.*\);?\s*$")


def level(name: LevelName, located: Located) -> CodeLevel:
    """The level whose lines these are, cut where it is longer than `MOST_CHARACTERS`."""
    lines = list(located)
    kept, characters = 0, 0
    for text, _ in lines:
        characters += len(text) + 1
        if characters > MOST_CHARACTERS:
            break
        kept += 1
    cut = None
    if kept < len(lines):
        left_out = f"the last {len(lines) - kept:,} of {counted(len(lines), 'line')}"
        cut = f"Left out: {left_out}. A level shows {MOST_CHARACTERS:,} characters."
    return CodeLevel(
        name=name,
        text="".join(f"{text}\n" for text, _ in lines[:kept]),
        lines=[(number, line) for number, (_, line) in enumerate(lines[:kept], start=1) if line],
        all_lines=len(lines),
        cut=cut,
    )


_ALIAS = re.compile(r"^(#loc\d*) = loc\((.*)\)$")
_USE = re.compile(r"\s*loc\((#loc\d*|unknown)\)$")
_ANY_USE = re.compile(r'\s*loc\((?:#loc\d*|unknown|"[^"]*"\(#loc\d*\)|callsite\(#loc\d* at #loc\d*\))\)')
_LOCATION = re.compile(r'^"([^"]*)":(\d+):\d+$')
_CALL = re.compile(r"^callsite\((#loc\d*) at (#loc\d*)\)$")
_NAMED = re.compile(r'^"[^"]*"\((#loc\d*)\)$')


def of_mlir(text: str, file: SourceFile) -> Located:
    """TTIR and TTGIR."""
    aliases = {found[1]: found[2] for found in map(_ALIAS.match, text.splitlines()) if found}
    known: dict[str, Chain] = {}

    def chain_of(name: str) -> Chain:
        if name not in known:
            known[name] = ()  # an alias may not lead to itself
            known[name] = resolved(aliases.get(name, ""))
        return known[name]

    def resolved(location: str) -> Chain:
        if found := _LOCATION.match(location):
            return file.locations(found[1], int(found[2]))
        if found := _CALL.match(location):
            return (*chain_of(found[1]), *chain_of(found[2]))
        found = _NAMED.match(location)
        return chain_of(found[1]) if found else ()

    for line in text.splitlines():
        if not _ALIAS.match(line):
            use = _USE.search(line)
            yield _ANY_USE.sub("", line), file.line_of(chain_of(use[1])) if use else None


_METADATA = re.compile(r"^!(\d+) = (?:distinct )?!DI(\w+)\((.*)\)$")
_FIELD = re.compile(r'(\w+): (?:!(\d+)|(\d+)|"([^"]*)")')


def of_llvm(text: str, file: SourceFile) -> Located:
    """LLVM's intermediate form, without what describes the source to debuggers."""
    nodes = {
        found[1]: (found[2], {name: ref or number or word for name, ref, number, word in _FIELD.findall(found[3])})
        for found in map(_METADATA.match, text.splitlines())
        if found
    }
    known: dict[str, Chain] = {}

    def chain_of(name: str) -> Chain:
        if name not in known:
            known[name] = ()
            kind, fields = nodes.get(name, ("", {}))
            if kind == "Location":
                scope = nodes.get(fields.get("scope", ""), ("", {}))[1]
                source = nodes.get(scope.get("file", ""), ("", {}))[1].get("filename", "")
                own = file.locations(source, int(fields.get("line", 0)))
                known[name] = (*own, *chain_of(fields.get("inlinedAt", "")))
        return known[name]

    for line in text.splitlines():
        if _METADATA.match(line) or line.lstrip().startswith("#dbg_"):
            continue
        use = re.search(r", !dbg !(\d+)", line)
        is_instruction = use is not None and not line.startswith("define")
        yield re.sub(r",? !dbg !\d+", "", line), file.line_of(chain_of(use[1])) if use and is_instruction else None


_FILE = re.compile(r'^\s*\.file\s+(\d+)\s+(?:"[^"]*"\s+)?"([^"]+)"')
_LOC = re.compile(
    r"^\s*\.loc\s+(\d+)\s+(\d+)\s+\d+(?:\s*,\s*function_name\s+\S+\s*,\s*inlined_at\s+(\d+)\s+(\d+)\s+\d+)?(.*)"
)
_LABEL = re.compile(r"^([.$\w]+):")


def _files(text: str) -> dict[int, str]:
    return {int(found[1]): found[2] for found in map(_FILE.match, text.splitlines()) if found}


def _of_loc(found: re.Match[str], files: dict[int, str], file: SourceFile) -> int | None:
    # LLVM writes the chain of calls behind it: // standard.py:293:36 @[ kernel.py:21:16 ]
    written = tuple(int(line) for line in re.findall(re.escape(file.name) + r":(\d+):\d+", found[5] or ""))
    if written:
        return file.line_of(tuple(line for line in written if line))
    called = file.locations(files.get(int(found[3]), ""), int(found[4])) if found[3] else ()
    return file.line_of((*file.locations(files.get(int(found[1]), ""), int(found[2])), *called))


def located_by_directives(
    text: str, file: SourceFile, files: dict[int, str] | None = None
) -> Iterator[tuple[str, int | None]]:
    """Every line of an assembler's text; instructions with their line."""
    files = _files(text) if files is None else files
    current: int | None = None
    for line in text.splitlines():
        found = _LOC.match(line)
        if found:
            current = _of_loc(found, files, file)
        is_instruction = re.match(r"^\s+[^\s./;#$}]", line) is not None
        yield line, current if is_instruction and not found else None


def of_ptx(text: str, file: SourceFile) -> Located:
    """PTX; at its end there are the names of files, and sections for debuggers."""
    code = text.split("\n\t.file\t", 1)[0]
    for line, source in located_by_directives(code, file, _files(text)):
        if not _LOC.match(line) and not re.match(r"^\$L__(tmp|func_(begin|end))\d+:", line):
            yield line, source


def with_own_locations(ptx: str, file: SourceFile) -> str:
    """The same PTX, each `.loc` of which names a line of the source where it comes from one: the assembler keeps no
    comments, and Triton writes chains of calls as such. What is assembled is the same but for its line numbers."""
    files = _files(ptx)
    own = next((number for number, name in files.items() if PurePath(name).name == file.name), None)
    lines = []
    for line in ptx.splitlines():
        found = _LOC.match(line)
        source = _of_loc(found, files, file) if found and own is not None else None
        lines.append(f"\t.loc\t{own} {source} 0" if source else line)
    return "\n".join([*lines, ""])


_SASS_LOCATION = re.compile(r'^\s*//## File "([^"]*)", line (\d+)')
_SASS_LINE = re.compile(r"^\s*(?:/\*[0-9a-f]+\*/.*|\.L_\w+:|\w+:)$")


def of_sass(text: str, file: SourceFile) -> Located:
    """What NVIDIA's disassembler writes with `-gi`: the kernel's own instructions and labels, without what fills the
    space behind its end."""
    current: int | None = None
    found: list[tuple[str, int | None]] = []
    for line in text.splitlines():
        if location := _SASS_LOCATION.match(line):
            current = file.line_of(file.locations(location[1], int(location[2])))
        elif _SASS_LINE.match(line):
            is_instruction = line.lstrip().startswith("/*")
            text = re.sub(r"^\s+(/\*\w+\*/)\s+", r" \1  ", line)
            found.append((text, current if is_instruction else None))
    while found and (not found[-1][0].startswith(" ") or re.search(r"\bNOP\s*;", found[-1][0])):
        found.pop()
    return found


def of_assembly(text: str, file: SourceFile, comment: str) -> Located:
    """What a compiler writes for an assembler: the instructions of functions, and labels that one of them names."""
    lines = [(line.split(comment)[0].rstrip().expandtabs(8), source) for line, source in _in_functions(text, file)]
    named = {word for line, _ in lines if not _LABEL.match(line) for word in re.findall(r"\.[\w.]+", line)}
    for line, source in lines:
        label = _LABEL.match(line)
        if line.strip() and (label is None or not label[1].startswith(".") or label[1] in named):
            yield line, source


def _in_functions(text: str, file: SourceFile) -> Iterator[tuple[str, int | None]]:
    is_code = False
    for line, source in located_by_directives(text, file):
        if re.match(r"^\s*\.(text|section)\b", line):
            is_code = re.match(r"^\s*\.(text|section\s+\.text)", line) is not None
        elif is_code and not re.match(r"^\s*\.\w+(\s|$)", line):
            yield line, source
