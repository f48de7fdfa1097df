"""Apply a monotone function once, to the largest of several values, instead of to each of them.

    maximum(relu(a), relu(b), where(m, relu(c), -inf))        ->        relu(maximum(a, b, where(m, c, -inf)))

A relu grows with its operand and keeps NaN, so the largest of relus is the relu of the largest. Where all that counts
is masked, the result would be -inf and not zero: one of the values must be there always.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

from compiler.ir.body import Body, Instruction, drop_dead, moved, operands_of


def with_relu_last(body: Body) -> Body:
    """The body with relus of the operands of a chain of `maximum` done once, at its end."""
    largest = [number for number, i in enumerate(body.instructions) if i.op == "maximum"]
    if not largest:
        return body
    uses = Counter(operand for i in body.instructions for operand in operands_of(i))
    chains = {number: leaves for number in largest if (leaves := _chain(body, number, uses))}
    # Those inside of another one go with it.
    inner = {link for number in chains for link in _links(body, number, uses) if link != number}
    tops = {number: leaves for number, leaves in chains.items() if number not in inner}
    if not tops:
        return body
    bare = {leaf: _without_relu(body, leaf) for leaves in tops.values() for leaf in leaves}
    out: list[Instruction] = []
    numbers: list[int] = []
    instead: dict[int, int] = {}
    for number, i in enumerate(body.instructions):
        links = number in tops or number in inner
        operands = tuple(instead.get(o, numbers[o]) if links else numbers[o] for o in i.operands)
        index = i.index if i.index is None else i.index.renumber(numbers)
        out.append(moved(i, operands, index, i.node))
        numbers.append(len(out) - 1)
        if number in bare:
            value, mask = bare[number]
            instead[number] = numbers[value]
            if mask is not None:
                out.append(replace(i, operands=(numbers[mask], numbers[value], numbers[i.operands[2]])))
                instead[number] = len(out) - 1
        if number in tops:
            out.append(replace(i, op="relu", operands=(len(out) - 1,)))
            numbers[number] = len(out) - 1
    return drop_dead(Body(tuple(out)))


def _links(body: Body, number: int, uses: Counter[int]) -> list[int]:
    """The instructions `maximum` that make up a chain that ends with `number`, each but the last for the next alone."""
    i = body.instructions[number]
    if i.op != "maximum" or not i.dtype.is_floating_point:
        return []
    found = [number]
    for operand in i.operands:
        if uses[operand] == 1:
            found += _links(body, operand, uses)
    return found


def _chain(body: Body, number: int, uses: Counter[int]) -> list[int]:
    """The values that a chain takes the largest of, where all of them are relus and one is never masked; else none."""
    links = _links(body, number, uses)
    leaves = [o for link in links for o in body.instructions[link].operands if o not in links]
    if len(leaves) < 3 or any(uses[leaf] != 1 or _without_relu(body, leaf)[0] < 0 for leaf in leaves):
        return []
    return leaves if any(body.instructions[leaf].op == "relu" for leaf in leaves) else []


def _without_relu(body: Body, leaf: int) -> tuple[int, int | None]:
    """The operand of a relu, and the mask that it is under; -1 where it is none, or masked otherwise."""
    i = body.instructions[leaf]
    if i.op == "relu":
        return i.operands[0], None
    if i.op != "where":
        return -1, None
    mask, chosen, other = i.operands
    relu, nothing = body.instructions[chosen], body.instructions[other]
    is_lowest = nothing.op == "constant" and nothing.value == float("-inf")
    return (relu.operands[0], mask) if relu.op == "relu" and is_lowest else (-1, None)
