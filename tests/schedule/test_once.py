"""What is made of a body serves every body that differs in names alone, with that one's names; and no other."""

from __future__ import annotations

import torch

from compiler.ir.body import Body, Instruction
from compiler.ir.index import Dim, Index
from compiler.schedule.once import once

X = Dim("x0", 8)
FLOAT = torch.float32


def body(read: str, written: str, value: float = 1.0, node: str | None = None) -> Body:
    return Body((
        Instruction("load", (), FLOAT, buffer=read, index=Index.of(X), node=node),
        Instruction("constant", (), FLOAT, value=value),
        Instruction("mul", (0, 1), FLOAT),
        Instruction("store", (2,), FLOAT, buffer=written, index=Index.of(X)),
    ))  # fmt: skip


class Maker:
    """Makes of two bodies the second one, and counts how often."""

    def __init__(self, what: str) -> None:
        self.what, self.times = what, 0

    def __call__(self, one: Body, two: Body, *names: str) -> Body | None:
        def make() -> Body:
            self.times += 1
            return two

        return once(make, self.what, (one, two), names)


def named(made: Body | None) -> list[tuple[str | None, str | None]]:
    assert made is not None
    return [(i.buffer, i.node) for i in made.instructions]


def test_bodies_that_differ_in_names_are_made_once() -> None:
    make = Maker("names")
    assert make(body("a", "b"), body("b", "c", node="n")) == body("b", "c")
    again = make(body("p", "q"), body("q", "r", node="m"))
    assert again == body("q", "r") and make.times == 1
    assert named(again) == named(body("q", "r", node="m"))


def test_what_differs_in_more_is_made_anew() -> None:
    make = Maker("more")
    one = body("a", "b")
    cases = [
        (one, body("b", "c")), (one, body("c", "b")), (one, body("b", "c", value=2.0)), (one, body("b", "c", node="b")),
        (one, body("b", "c", value=0.0)), (one, body("b", "c", value=-0.0)), (one, body("b", "c", value=float("nan"))),
    ]  # fmt: skip
    for times, (first, second) in enumerate(cases, start=1):
        made = make(first, second)
        assert make.times == times and str(made) == str(second)
    assert make(one, body("b", "c"), "b") is not None and make.times == len(cases) + 1
    assert make(one, body("b", "c"), "elsewhere") is not None and make.times == len(cases) + 2


def test_that_there_is_none_is_known_too() -> None:
    asked: list[int] = []
    for read in ("a", "b"):
        assert once(lambda: asked.append(1), "none", (body(read, "c"),), ()) is None
    assert len(asked) == 1


def test_a_body_with_other_names_tells_of_itself_what_a_new_one_would() -> None:
    first = body("a", "b", node="n")
    asked = ("form", "dims", "depends_on_loads", "is_scatter", "operations", "most_expensive", "is_random")
    for name in asked:  # so that it knows
        getattr(first, name)
    assert once(lambda: first, "told", (first,), ()) is first
    second = once(lambda: first, "told", (body("p", "q", node="m"),), ())
    fresh = body("p", "q", node="m")
    assert second == fresh and second is not None
    assert {name: getattr(second, name) for name in asked} == {name: getattr(fresh, name) for name in asked}
