"""Loops cut where a condition changes: what is padded, shifted or concatenated has no masks inside of its pieces."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor

from compiler.codegen.cpp.pieces import pieces_of
from compiler.compile import build
from compiler.ir.index import Dim, Index
from compiler.schedule.program.program import Statement
from tests.compile_program import compile_program


def moved(long: Tensor, x: Tensor) -> tuple[Tensor, ...]:
    differences = torch.cat([long[:1], long[1:] - long[:-1]])
    inside = F.pad(x * 2.0, (3, 2, 1, 0), value=0.5)
    return differences, inside, torch.cat([x, -x[:, :7]], 1), x.roll(5, 1) + x, x[:, 4:].bfloat16().exp()


def test_pieces_give_what_eager_gives() -> None:
    x, long = torch.randn(9, 40), torch.randn(70_000)
    compilation = compile_program(moved, long, x, target="cpu")
    torch.testing.assert_close(tuple(build(compilation).executable.call([long, x])), moved(long, x))
    sources = [kernel.source for kernel in compilation.cpp.values()]
    # Only whether a row is padded is still asked.
    assert sum(source.count(" ? ") for source in sources) <= 2
    assert not any("%" in source for source in sources)


def beside(x: Tensor, sink: Tensor, long: Tensor) -> tuple[Tensor, ...]:
    wide = torch.cat([x, sink], 1)
    return wide.softmax(1), F.pad(x, (2, 3), value=-1.0).sum(1), torch.cat([long, long[:99] * 2.0]).amax(0)


def test_rows_of_a_reduction_are_cut_as_well() -> None:
    inputs = [torch.randn(9, 40), torch.randn(9, 1), torch.randn(70_000)]
    compilation = compile_program(beside, *inputs, target="cpu")
    torch.testing.assert_close(tuple(build(compilation).executable.call(inputs)), beside(*inputs))
    sources = [kernel.source for kernel in compilation.cpp.values()]
    assert not any("_ptr[" in line and " ? " in line for source in sources for line in source.splitlines())


def test_every_point_is_in_one_piece_whose_conditions_are_known() -> None:
    dim = Dim("x0", 20)
    for factor, offset in ((1, -7), (-1, 7), (3, -8), (-3, 29), (1, 0), (1, -20)):
        for op in ("ge", "gt", "lt", "le"):
            statements = [
                Statement(4, "at", "index_value", (), torch.int64, "x", (), index=factor * Index.of(dim) + offset),
                Statement(5, "zero", "constant", (), torch.int64, "x", (), value=0),
                Statement(6, "mask", op, (4, 5), torch.bool, "x", ()),
                Statement(7, "a", "load", (6,), torch.float32, "x", (), buffer="a", index=Index.of(dim)),
                Statement(8, "", "store", (7,), torch.float32, "x", (), buffer="b", index=Index.of(dim)),
            ]
            pieces = pieces_of(statements, dim)
            assert [point for piece in pieces for point in range(piece.start, piece.end)] == list(range(20))
            for piece in pieces if len(pieces) > 1 else ():
                value = factor * piece.start + offset
                holds = {"ge": value >= 0, "gt": value > 0, "lt": value < 0, "le": value <= 0}[op]
                read, store = (s for s in piece.statements if s.op in ("load", "constant", "store"))
                assert (read.op, read.operands) == ("load" if holds else "constant", ())
                assert store.number == 8 and store.operands == (read.number,) == (7,)
