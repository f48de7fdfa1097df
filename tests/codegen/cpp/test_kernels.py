"""Fused groups as C++ kernels: their values, and the loops that they are made of."""

from __future__ import annotations

from functools import partial
from typing import Any

import torch

from compiler.codegen.cpp.render import render_cpp
from compiler.ir import interpret
from compiler.ir.index import Dim, Index
from compiler.ir.ops import ops
from compiler.schedule.group import Group
from tests.codegen.cpp.harness import group, node, render, run

F32 = torch.float32
ROWS, COLUMNS = Dim("x0", 70), Dim("r0", 130)
ROW, COLUMN = Index.of(ROWS), Index.of(COLUMNS)


def softmax(rows: Dim, columns: Dim, at: Index) -> Group:
    """Over `columns`, with element (row, column) at offset `at`."""
    row, shape = Index.of(rows), (rows.size, columns.size)

    def x() -> Any:
        return ops.load("x", at, F32)

    return group(
        "fused_softmax",
        (rows,),
        (columns,),
        node("amax", (rows.size,), F32, (rows,), (columns,), lambda: ops.store("amax", row, ops.reduce("max", x()))),
        node(
            "exp",
            shape,
            F32,
            (rows, columns),
            (),
            lambda: ops.store("exp", at, ops.exp(ops.sub(x(), ops.load("amax", row, F32)))),
        ),
        node(
            "total",
            (rows.size,),
            F32,
            (rows,),
            (columns,),
            lambda: ops.store("total", row, ops.reduce("sum", ops.load("exp", at, F32))),
        ),
        node(
            "softmax",
            shape,
            F32,
            (rows, columns),
            (),
            lambda: ops.store("softmax", at, ops.truediv(ops.load("exp", at, F32), ops.load("total", row, F32))),
        ),
    )


def test_softmax_of_rows_is_three_passes_and_one_exponential() -> None:
    made, x = softmax(ROWS, COLUMNS, 130 * ROW + COLUMN), torch.randn(70, 130)
    torch.testing.assert_close(run(made, {"x": x})["softmax"], x.softmax(1))
    _, *passes = render(made, {"x": x}).source.split("// Pass ")
    assert ["fs::exp(" in text for text in passes] == [False, True, False]


def test_softmax_of_columns_runs_along_the_columns() -> None:
    made, x = softmax(COLUMNS, ROWS, 130 * ROW + COLUMN), torch.randn(70, 130)
    result = run(made, {"x": x})["softmax"].view(70, 130)
    torch.testing.assert_close(result, x.softmax(0))
    kernel = render(made, {"x": x})
    assert kernel.config["shape"] == "columns" and kernel.source.count("fs::exp(") == 1


def test_short_rows_are_turned_and_run_along_the_columns() -> None:
    for length, count in ((17, 150), (5, 64), (16, 70)):
        rows, columns = Dim("x0", count), Dim("r0", length)
        made, x = softmax(rows, columns, length * Index.of(rows) + Index.of(columns)), torch.randn(count, length)
        torch.testing.assert_close(run(made, {"x": x})["softmax"], x.softmax(1))
        kernel = render(made, {"x": x})
        assert kernel.config["shape"] == "columns" and kernel.source.count("fs::exp(") == 1
        assert (
            kernel.source.count("fs::transpose(x_ptr") == 1
            and kernel.source.count("fs::transpose(softmax_transposed") == 1
        )


def test_what_passes_over_columns_store_along_rows_is_turned_tile_by_tile() -> None:
    rows, columns = Dim("x0", 70), Dim("r0", 133)
    x, along = torch.randn(133, 70), Index.of(rows) + 70 * Index.of(columns)
    made = softmax(rows, columns, along)
    last = node(
        "turned",
        (70, 133),
        F32,
        (rows, columns),
        (),
        lambda: ops.store("turned", 133 * Index.of(rows) + Index.of(columns), ops.load("softmax", along, F32)),
    )
    made = group("both", (rows,), (columns,), *(member.node for member in made.members), last, stored=("turned",))
    assert render(made, {"x": x}).config["shape"] == "columns"
    torch.testing.assert_close(run(made, {"x": x})["turned"].view(70, 133), x.softmax(0).t())


def test_softmax_of_one_long_row_runs_in_parallel_chunks() -> None:
    rows, columns = Dim("x0", 1), Dim("r0", 100_003)
    made, x = softmax(rows, columns, Index.of(columns)), torch.randn(1, 100_003)
    torch.testing.assert_close(run(made, {"x": x})["softmax"], x.softmax(1))
    kernel = render(made, {"x": x})
    assert kernel.config["parallel"] == "chunks"
    assert ["fs::exp(" in text for text in kernel.source.split("// Pass ")[1:]] == [False, True, False]


def test_what_is_kept_does_not_stand_where_other_rows_or_inputs_do() -> None:
    made, x = softmax(ROWS, COLUMNS, 130 * ROW + COLUMN), torch.randn(70, 130)
    storage = dict.fromkeys(("x", "amax", "exp", "total", "softmax"), F32)
    assert "softmax_ptr[130 * x0 + r0] = exp;" in render(made, {"x": x}).source
    assert "softmax_ptr[130 * x0 + r0] = exp;" not in render_cpp(made, storage, frozenset({"x", "softmax"})).source


def test_nan_reaches_the_whole_row() -> None:
    x = torch.randn(70, 130)
    x[3, 7] = float("nan")
    x[4] = float("-inf")
    result = run(softmax(ROWS, COLUMNS, 130 * ROW + COLUMN), {"x": x})["softmax"]
    torch.testing.assert_close(result, x.softmax(1), equal_nan=True)


def test_result_does_not_depend_on_the_number_of_threads() -> None:
    long = Dim("r0", 1_000_003)
    made = group(
        "total",
        (),
        (long,),
        node(
            "sum_1",
            (),
            F32,
            (),
            (long,),
            lambda: ops.store("sum_1", Index.number(0), ops.reduce("sum", ops.load("x", Index.of(long), F32))),
        ),
    )
    x, before = torch.randn(1_000_003), torch.get_num_threads()
    results = set()
    for threads in (1, 2, 3):
        torch.set_num_threads(threads)
        results.add(run(made, {"x": x})["sum_1"].item())
    torch.set_num_threads(before)
    assert len(results) == 1
    assert abs(results.pop() - x.double().sum().item()) < 1e-2


def test_masked_load_reads_nothing_outside() -> None:
    dim = Dim("x0", 4096)
    at = Index.of(dim)

    def body() -> None:
        inside = ops.lt(ops.index_value(at), ops.constant(10, torch.int64))
        ops.store("out", at, ops.load("x", at * 1_000_000, F32, mask=inside))

    x = torch.arange(9_000_001, dtype=F32)
    result = run(group("masked", (dim,), (), node("out", (4096,), F32, (dim,), (), body)), {"x": x})["out"]
    assert result[:10].tolist() == [n * 1_000_000.0 for n in range(10)] and not result[10:].any()


def test_masked_load_of_a_value_of_the_group() -> None:
    dim = Dim("x0", 50)
    at = Index.of(dim)

    def keep_first() -> None:
        inside = ops.lt(ops.index_value(at), ops.constant(10, torch.int64))
        ops.store("out", at, ops.load("double", at, F32, mask=inside))

    made = group(
        "masked_value",
        (dim,),
        (),
        node(
            "double",
            (50,),
            F32,
            (dim,),
            (),
            lambda: ops.store("double", at, ops.mul(ops.load("x", at, F32), ops.constant(2.0, F32))),
        ),
        node("out", (50,), F32, (dim,), (), keep_first),
        stored=("double", "out"),
    )
    x = torch.randn(50)
    result = run(made, {"x": x})
    assert torch.equal(result["double"], x * 2) and torch.equal(result["out"][:10], x[:10] * 2)
    assert not result["out"][10:].any()


def test_random_numbers_are_those_of_the_interpreter() -> None:
    dim = Dim("x0", 1003)
    at = Index.of(dim)

    def body(name: str) -> None:
        ops.store(name, at, getattr(ops, name)(ops.load("seed", Index.number(0), torch.int64), at + 5))

    made = group(
        "kernel_random",
        (dim,),
        (),
        *(node(name, (1003,), F32, (dim,), (), partial(body, name)) for name in ("rand", "randn")),
        stored=("rand", "randn"),
    )
    seed = torch.tensor([(123 << 33) + 77])
    result, counter = run(made, {"seed": seed}), torch.arange(1003) + 5
    assert torch.equal(result["rand"], interpret.uniform(seed, counter))
    torch.testing.assert_close(result["randn"], interpret.normal(seed, counter))


def test_argmax_finds_the_first_in_every_shape() -> None:
    x = torch.randn(70, 130).round()

    def body(rows: Dim, columns: Dim) -> None:
        value, position = ops.load("x", 130 * ROW + COLUMN, F32), ops.index_value(Index.of(columns))
        ops.store("out", Index.of(rows), ops.reduce("argmax", value, position))

    for rows, columns, dim in ((ROWS, COLUMNS, 1), (COLUMNS, ROWS, 0)):
        made = group(
            "position",
            (rows,),
            (columns,),
            node("out", (rows.size,), torch.int64, (rows,), (columns,), partial(body, rows, columns)),
        )
        assert torch.equal(run(made, {"x": x})["out"], x.argmax(dim))


def test_reduction_of_nothing_gives_the_identity() -> None:
    none = Dim("r0", 0)

    def body(name: str, kind: str) -> None:
        ops.store(name, ROW, ops.reduce(kind, ops.load("x", ROW + Index.of(none), F32)))

    made = group(
        "nothing",
        (ROWS,),
        (none,),
        *(
            node(name, (70,), F32, (ROWS,), (none,), partial(body, name, kind))
            for name, kind in (("total", "sum"), ("product", "prod"), ("largest", "max"))
        ),
        stored=("total", "product", "largest"),
    )
    result = run(made, {"x": torch.randn(70)})
    assert not result["total"].any() and (result["product"] == 1).all() and (result["largest"] == float("-inf")).all()


def test_loops_over_contiguous_memory_become_one() -> None:
    a, b = Dim("x0", 300), Dim("x1", 500)
    at = 500 * Index.of(a) + Index.of(b)
    made = group(
        "fused_sin_mul",
        (a, b),
        (),
        node(
            "mul",
            (300, 500),
            F32,
            (a, b),
            (),
            lambda: ops.store("mul", at, ops.mul(ops.sin(ops.load("u", at, F32)), ops.load("v", at, F32))),
        ),
    )
    kernel = render(made, {"u": torch.empty(300, 500), "v": torch.empty(300, 500)})
    assert (
        kernel.source
        == """\
#include "fusionscope.h"
#include "trigonometry.h"

// fused_sin_mul over [x0 < 150000]: vectors along x0, threads over x.
extern "C" void fused_sin_mul(
    const float* __restrict__ u_ptr,
    const float* __restrict__ v_ptr,
    float* __restrict__ mul_ptr) {
    #pragma omp parallel for simd schedule(static)
    for (int64_t x0 = 0; x0 < 150000; ++x0) {
        const float u = u_ptr[x0];
        const float sin = fs::sin(u);
        const float v = v_ptr[x0];
        const float mul = sin * v;
        mul_ptr[x0] = mul;
    }
}
"""
    )
    assert kernel.parameters == ("u", "v", "mul")
    assert [line for line, _ in kernel.lines] == [11, 12, 13, 14, 15]
    assert {nodes for _, nodes in kernel.lines} == {("mul",)}


def test_transposed_read_is_turned_square_by_square() -> None:
    a, b = Dim("x0", 100), Dim("x1", 77)
    made = group(
        "transposed",
        (a, b),
        (),
        node(
            "out",
            (100, 77),
            F32,
            (a, b),
            (),
            lambda: ops.store(
                "out", 77 * Index.of(a) + Index.of(b), ops.load("x", 100 * Index.of(b) + Index.of(a), F32)
            ),
        ),
    )
    x = torch.randn(77, 100)
    assert torch.equal(run(made, {"x": x})["out"], x.t())
    source = render(made, {"x": x}).source
    assert "fs::transpose(x_ptr + 100 * x1_start + x0_start, 100," in source


def test_what_is_stored_both_ways_is_turned_on_its_way_out() -> None:
    a, b = Dim("x0", 70), Dim("x1", 45)
    along, across = 45 * Index.of(a) + Index.of(b), 70 * Index.of(b) + Index.of(a)

    def copied(name: str, at: Index) -> Any:
        return node(name, (70, 45), F32, (a, b), (), lambda: ops.store(name, at, ops.load("x", along, F32)))

    made = group("both", (a, b), (), copied("out", along), copied("turned", across), stored=("out", "turned"))
    x = torch.randn(70, 45)
    found = run(made, {"x": x})
    assert torch.equal(found["out"].flatten(), x.flatten())
    assert torch.equal(found["turned"].flatten(), x.t().flatten())
    assert "turned_ptr + 70 * x1_start + x0_start, 70);" in render(made, {"x": x}).source


def test_small_kernels_start_no_threads() -> None:
    assert (
        "parallel"
        not in render(
            softmax(Dim("x0", 2), Dim("r0", 8), 8 * Index.of(Dim("x0", 2)) + Index.of(Dim("r0", 8))),
            {"x": torch.empty(2, 8)},
        ).source
    )


def test_values_of_columns_stand_where_vectors_may_be_stored() -> None:
    """With GCC 12 and 512 bits this one had its running sums at an address that no vector is stored to, and crashed."""

    def program(b: torch.Tensor) -> tuple[torch.Tensor, ...]:
        kept = b[:, :4, 1:]
        tiled = torch.tile(kept, (1, 1, 1))
        wide = torch.stack([tiled.expand(3, 5, 4, 6)] * 2, -4)
        small = torch.exp(-wide.abs())
        rows = kept.reshape(30, 2, -1).view(4, 30, -1)
        tiled[0].mul_(2)
        return small.diagonal(1, -2, -1), torch.triu(tiled).cumsum(0) / 8, (~rows.to(torch.int8)).chunk(2, -1)[-1]

    b = torch.randn(5, 5, 14)[..., ::2]
    torch.testing.assert_close(torch.compile(program, backend="fusionscope")(b), program(b))
