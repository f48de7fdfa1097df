"""Names of kernels, made from the operators that they fuse: `fused_sin_cos_mul_relu`."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import lru_cache

from compiler.schedule.group import Group, Member

#: Longer names are cut in the middle; the report lists every node anyway.
LONGEST = 60


@lru_cache(maxsize=1 << 14)
def operator_of(node_name: str) -> str:
    """`mul_12` -> `mul`."""
    return re.sub(r"(_\d+)+$", "", node_name).removeprefix("buf_") or node_name


def fused_name(members: Sequence[Member]) -> str:
    """Each operator once, in order; "etc" stands for those in the middle that there is no room for."""
    operators = list(dict.fromkeys(operator_of(member.name) for member in members))
    name = "fused_" + "_".join(operators)
    while len(name) > LONGEST and len(operators) > 2:
        del operators[len(operators) // 2]
        middle = len(operators) // 2
        name = "fused_" + "_".join([*operators[:middle], "etc", *operators[middle:]])
    return name[:LONGEST]


def with_unique_names(groups: Iterable[Group]) -> dict[str, str]:
    """A distinct kernel name for each group, by the name of its first member."""
    taken: dict[str, int] = {}
    names: dict[str, str] = {}
    for group in groups:
        base = fused_name(group.members) if len(group.members) > 1 else operator_of(group.members[0].name)
        base = base if base.startswith("fused_") else f"kernel_{base}"
        taken[base] = taken.get(base, 0) + 1
        names[group.members[0].name] = base if taken[base] == 1 else f"{base}_{taken[base]}"
    return names
