"""What the instructions of a kernel do: how many of which kind, how wide loads and stores are, matrix units.

NVIDIA's are named in "CUDA Binary Utilities", AMD's in "AMD Instinct MI300 Instruction Set Architecture". Each is
counted once, as it is written: one within a loop runs more often.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Literal, get_args

from compiler.report import CodeLevel, MemoryAccess
from compiler.report.machine_code import InstructionKind

Space = Literal["global", "shared", "local", "other"]
#: More loads and stores than this are told by their number alone.
MOST_ACCESSES = 2000


@dataclass
class Instructions:
    counts: dict[InstructionKind, int]
    accesses: list[MemoryAccess] = field(default_factory=list)
    matrix: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def of_level(level: CodeLevel) -> Instructions:
    """Of a level in SASS or in AMD's assembly. Of one that was cut, what is left of it."""
    is_sass = level.name == "sass"
    sources = dict(level.lines)
    found = Instructions(dict.fromkeys(get_args(InstructionKind), 0))
    for number, line in enumerate(level.text.splitlines(), start=1):
        name = _sass_name(line) if is_sass else _amd_name(line)
        if name is None:
            continue
        kind = _sass_kind(name) if is_sass else _amd_kind(name)
        found.counts[kind] += 1
        if kind == "matrix" and name not in found.matrix:
            found.matrix.append(name)
        access = (_sass_access(name) if is_sass else _amd_access(name)) if kind == "memory" else None
        if access is not None:
            space, is_store, bits = access
            found.accesses.append(
                MemoryAccess(
                    line=number,
                    source_line=sources.get(number),
                    instruction=name,
                    space=space,
                    is_store=is_store,
                    bits=bits,
                )
            )
    if len(found.accesses) > MOST_ACCESSES:
        found.notes.append(f"The first {MOST_ACCESSES} of {len(found.accesses)} loads and stores are listed.")
        del found.accesses[MOST_ACCESSES:]
    if level.cut is not None:
        found.notes.append("Instructions are counted in what is shown of the last level, not in all of it.")
    return found


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_SASS = re.compile(r"^\s*/\*[0-9a-f]+\*/\s+(?:@!?U?P\w+\s+)?([A-Z][\w.]*)")
_SASS_MATRIX = re.compile(r"^(?:[HIDBQO]G?MMA|UTC\w*MMA|UTC[HIQO]\w*)$")
_SASS_MEMORY = re.compile(
    r"^(?:LD\w*|ULD\w*|ST[GSLM]?|STSM|STTM|ATOM\w*|UATOM\w*|RED[GS]?|UTMA(?:LDG|STG|REDG)|UBLK\w+|CCTL\w*|SU(?:LD|ST)\w*)$"
)
_SASS_CONTROL = _words(
    "BRA BRX BRXU JMP JMX JMXU EXIT RET CALL BSSY BSYNC BREAK BMOV KILL BPT RPCMOV RTT YIELD NANOSLEEP"
)
_SASS_SYNCHRONISATION = re.compile(
    r"^(?:BAR|B2R|SYNCS|U?SYNCS\w*|DEPBAR|LDGDEPBAR|MEMBAR|ERRBAR|CGAERRBAR|FENCE|WARPSYNC|WARPGROUP|WARPGROUPSET|"
    r"ARRIVES|UCGABAR\w*|ACQBULK|UTMACMDFLUSH|UTMACCTL|UTCBAR|ENDCOLLECTIVE)$"
)
_SASS_OTHER = re.compile(
    r"^(?:U?MOV|MOVM|S2U?R|CS2U?R|R2UR|U?P2U?R|U?R2P|U?PRMT|U?F?SEL|SHFL|VOTE\w*|MATCH|REDUX|CREDUX|ELECT|NOP|"
    r"PREEXIT|ACQSHMINIT|SETCTAID|SETMAXREG|USETMAXREG|PLOP3|UPLOP3|GETLMEMBASE|SETLMEMBASE|LEPC|UTCATOMSWS)$"
)


def _sass_name(line: str) -> str | None:
    found = _SASS.match(line)
    return found[1] if found else None


def _sass_kind(name: str) -> InstructionKind:
    base = name.split(".")[0]
    # Waits for copies under way begin like loads.
    if _SASS_SYNCHRONISATION.match(base):
        return "synchronisation"
    if _SASS_MATRIX.match(base) and base != "UTCATOMSWS":
        return "matrix"
    if _SASS_MEMORY.match(base):
        return "memory"
    if base in _SASS_CONTROL:
        return "control"
    return "other" if _SASS_OTHER.match(base) else "arithmetic"


def _sass_access(name: str) -> tuple[Space, bool, int | None] | None:
    base, *changes = name.split(".")
    if base in ("LDC", "ULDC", "LDCU") or base.startswith("CCTL"):
        return None  # arguments and constants
    is_store = base.startswith(("ST", "RED", "ATOM", "UATOM", "UTMASTG", "UTMAREDG"))
    space: Space = "other"
    if base in ("LDG", "STG", "LDGSTS", "REDG", "RED", "ATOM", "ATOMG", "UTMALDG", "UTMASTG", "UTMAREDG"):
        space = "global"
    elif base in ("LDS", "STS", "LDSM", "STSM", "ATOMS", "REDS", "LDTM", "STTM"):
        space = "shared"
    elif base in ("LDL", "STL"):
        space = "local"
    # A matrix in shared memory, a tile, tensor memory: the threads of a warp share one access.
    if base in ("LDSM", "STSM", "LDTM", "STTM") or base.startswith("U"):
        return space, is_store, None
    widths = [int(found[1]) for change in changes if (found := re.fullmatch(r"[USF]?(8|16|32|64|128|256)", change))]
    return space, is_store, max(widths, default=32)


_AMD = re.compile(r"^\s+([a-z]+_\w+)")
_AMD_OTHER = re.compile(
    r"^(?:[sv]_(?:mov|cmov|cselect|cndmask|readlane|readfirstlane|writelane|perm|swap|nop|accvgpr)\w*|s_(?:sleep|setprio|setreg|getreg|sendmsg)\w*|ds_(?:b?permute|swizzle)\w*)"
)


def _amd_name(line: str) -> str | None:
    found = _AMD.match(line)
    return found[1] if found else None


def _amd_kind(name: str) -> InstructionKind:
    if name.startswith(("v_mfma", "v_smfmac")):
        return "matrix"
    if _AMD_OTHER.match(name):
        return "other"
    if re.match(r"(?:global|flat|buffer|scratch|ds)_|s_(?:buffer_)?load|s_(?:dcache|icache)", name):
        return "memory"
    if re.match(r"s_(?:c?branch|endpgm|setpc|swappc|call|trap)", name):
        return "control"
    return "synchronisation" if re.match(r"s_(?:barrier|waitcnt)", name) else "arithmetic"


def _amd_access(name: str) -> tuple[Space, bool, int | None] | None:
    spaces: dict[str, Space] = {"global": "global", "buffer": "global", "ds": "shared", "scratch": "local"}
    prefix = name.split("_")[0]
    if prefix == "s" or re.match(r"buffer_(?:wb|inv|gl)", name):
        return None  # arguments, and caches
    is_store = re.search(r"_(?:store|write|atomic|add|max|min|cmpst)", name) is not None
    times = 2 if re.search(r"(?:read|write)2", name) else 1
    for pattern, unit in ((r"dwordx(\d)", 32), (r"_[bfui](\d+)(?:_|$)", 1)):
        if found := re.search(pattern, name):
            return spaces.get(prefix, "other"), is_store, times * unit * int(found[1])
    narrow = 8 if "byte" in name else 16 if "short" in name else 32
    return spaces.get(prefix, "other"), is_store, times * narrow
