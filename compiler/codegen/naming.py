"""Names in kernels: words that a reader of the model knows, that are legal, and that nothing else has."""

from __future__ import annotations

import keyword
import re
from collections.abc import Sequence
from dataclasses import replace

from compiler.ir.ops import NAMED
from compiler.schedule.group import Group
from compiler.schedule.program.program import EFFECTS, Program, Section, Statement

#: Names that a variable in a kernel must not take: those of the generated code itself.
RESERVED = frozenset(
    """tl triton libdevice tl_math pid x_block r_block x_index r_index x_mask r_mask mask offset offsets acc accumulator
    result main int float double char bool void auto const static struct union switch case default register signed
    unsigned short long volatile inline namespace template typename this new delete operator true false std omp
    range philox y_index y_mask r_start part parts first last arrived workspace_ptr counters_ptr maximum_of_two
    minimum_of_two every_bit product_of_two last_lane larger_at smaller_at
    floor_divide_integers remainder_of_integers floor_divide_floats remainder_of_floats power_of_integers
    divide approximate_reciprocal square_root
    any_lane uniform uniform_by_fours in_a_row one_plus_erf one_plus_tanh rotated
    shared shared_word shared_by_fours shared_by_eights shared_word_by_fours shared_word_by_eights drawn_word
    quick_exp quick_sigmoid program x_start x_first x_last team arrived_teams other
    ticket element counter left draw drawn launch send receive leave left_by cluster_arrive cluster_wait
    send_wide look_back look_back_wide group groups mate mates open_gate wait_at m_mask n_mask k_mask
    wait_for first_index_of multiply_in_turns raise_in_place lower_in_place add_exponential join_exponentials
    add_square join_squares m_block n_block first_block band_rows tile_number k_start
    float32_of_float8_e4m3fn float32_of_float8_e4m3fn_by_bits float8_e4m3fn_of_float32 float8_e4m3fn_of_float32_by_bits
    float32_of_float8_e5m2 float8_e5m2_of_float32""".split()
)


def named_program(program: Program, group: Group) -> Program:
    """The program of `group` with names for its values."""
    statements = named(program.statements, group)
    by_number = {s.number: s for s in statements}

    def with_names(old: Sequence[Statement]) -> tuple[Statement, ...]:
        return tuple(by_number[s.number] for s in old)

    sections = tuple(Section(section.level, with_names(section.statements)) for section in program.sections)
    return replace(program, statements=tuple(statements), sections=sections, tail=with_names(program.tail))


def named(statements: Sequence[Statement], group: Group) -> list[Statement]:
    """Give values names that a reader of the model knows: a load is called after its buffer, the value that a node
    stores after that node, anything else after its op."""
    buffer_of_value: dict[int, str] = {}
    for member in group.members:
        store = next((s for s in statements if s.op == "store" and s.buffer == member.name), None)
        if store is not None:
            buffer_of_value.setdefault(store.operands[0], member.name)
    last_of_node: dict[str, int] = {}
    for statement in statements:
        if statement.op not in (*EFFECTS, "constant"):
            last_of_node[statement.nodes[0]] = statement.number
    for node, number in last_of_node.items():
        buffer_of_value.setdefault(number, node)
    taken = set(RESERVED) | NAMED.keys() | {dim.name for dim in group.space.dims}
    result: list[Statement] = []
    for statement in statements:
        base = (
            ""
            if statement.op in EFFECTS
            else statement.buffer
            or buffer_of_value.get(statement.number)
            or (f"{statement.value}" if statement.op in ("reduce", "scan") else statement.op)
        )
        result.append(replace(statement, target=unique_name(identifier(base), taken) if base else ""))
    return result


def identifier(text: str) -> str:
    """`text` as a legal name in Python and C++."""
    name = re.sub(r"\W", "_", text)
    return f"_{name}" if not name or name[0].isdigit() or keyword.iskeyword(name) else name


def unique_name(name: str, taken: set[str]) -> str:
    """The name, or where it is taken the name with a number; it is taken then."""
    candidate, count = name, 1
    while candidate in taken:
        count += 1
        candidate = f"{name}_{count}"
    taken.add(candidate)
    return candidate
