"""What is not as it was at the size before is marked; what is, is not."""

from __future__ import annotations

from typing import Any, Literal

from compiler.report import Decision, Graph, Kernel, SweptSize
from compiler.sweep.flips import MOST_FLIPS, MOST_PAIRS, Attempt, attempt_of, result_of

Answer = tuple[str, str, Literal["fused", "refused"], str]


def attempt(value: int, *answers: Answer, kernels: str = "mul sum", **fields: Any) -> Attempt:
    """A size with these answers of the scheduler, and with kernels of these nodes ("mul sum | div": two of them)."""
    decisions = [
        Decision(a=a, b=b, round=1, kind="vertical", verdict=verdict, reason=reason, message="")
        for a, b, verdict, reason in answers
    ]
    made = [
        Kernel(name=f"k{place}", kind="triton", nodes=nodes.split(), source="")
        for place, nodes in enumerate(kernels.split("|"))
    ]
    size = SweptSize(value=value, **{"launches": 1, "kernels": 1, **fields})
    done = attempt_of(size, [Graph(name="graph_0", decisions=decisions, kernels=made)])
    done.shapes = ((value, 8),)
    return done


FUSED: Answer = ("mul", "sum", "fused", "fused.vertical")
SLOWER: Answer = ("mul", "sum", "refused", "profit.slower")
NUMEL: Answer = ("mul", "sum", "refused", "shape.numel")
APART = "mul | sum"


def flips(result: Any) -> list[list[tuple[str, str, str, str]]]:
    return [[(flip.kind, flip.about, flip.before, flip.after) for flip in size.flips] for size in result.sizes]


def test_a_verdict_that_turns_round_and_back_is_marked_twice() -> None:
    result = result_of(
        "N",
        [
            attempt(1, FUSED),
            attempt(2, SLOWER, kernels=APART),
            attempt(3, SLOWER, kernels=APART),
            attempt(4, FUSED),
        ],
    )
    assert flips(result) == [
        [],
        [("verdict", "mul + sum", "fused: fused.vertical", "refused: profit.slower")],
        [],
        [("verdict", "mul + sum", "refused: profit.slower", "fused: fused.vertical")],
    ]
    assert result.verdict == "The compiler decides differently from the size before at N = 2 and 4."
    assert result.pairs[0].flips


def test_another_reason_for_the_same_verdict_is_a_flip_too() -> None:
    result = result_of("N", [attempt(1, SLOWER, kernels=APART), attempt(2, NUMEL, kernels=APART)])
    assert flips(result)[1] == [("verdict", "mul + sum", "refused: profit.slower", "refused: shape.numel")]


def test_a_pair_that_others_brought_together_flips_nothing_and_one_that_came_apart_does() -> None:
    by_others = result_of("N", [attempt(1, FUSED), attempt(2)])
    assert flips(by_others) == [[], []]
    assert [one and one.together for one in by_others.pairs[0].outcomes] == [True, True]
    assert flips(result_of("N", [attempt(1, SLOWER, kernels=APART), attempt(2, kernels=APART)])) == [[], []]
    assert flips(result_of("N", [attempt(1, FUSED), attempt(2, kernels=APART)]))[1] == [
        ("verdict", "mul + sum", "fused: fused.vertical", "never considered")
    ]
    assert flips(result_of("N", [attempt(1, SLOWER, kernels=APART), attempt(2, SLOWER)]))[1] == [
        ("verdict", "mul + sum", "refused: profit.slower", "refused: profit.slower, yet in one kernel")
    ]


def test_the_order_in_which_a_loop_nest_was_fused_flips_nothing_but_another_kind_of_kernel_does() -> None:
    def ways(before: str, after: str) -> bool:
        sizes = [attempt(place, ("mul", "sum", "fused", reason)) for place, reason in enumerate((before, after))]
        return bool(flips(result_of("N", sizes))[1])

    assert not ways("fused.vertical", "fused.across") and not ways("fused.horizontal", "fused.inline")
    assert ways("fused.vertical", "fused.batch") and ways("fused.recompute", "fused.vertical")
    refused_yet_together: Answer = ("mul", "sum", "refused", "dependency.intermediate")
    assert flips(result_of("N", [attempt(1, FUSED), attempt(2, refused_yet_together)])) == [[], []]


def test_pairs_that_were_answered_otherwise_come_before_those_that_follow_from_them() -> None:
    def size(value: int, answer: Answer, kernels: str) -> Attempt:
        return attempt(value, ("abs", "sum", "refused", "dependency.intermediate"), answer, kernels=kernels)

    result = result_of("N", [size(1, FUSED, "abs mul sum"), size(2, SLOWER, "abs mul | sum")])
    assert [about for _, about, _, _ in flips(result)[1]] == ["mul + sum", "abs + sum"]


def test_nodes_that_are_gone_counts_and_plans_are_marked() -> None:
    result = result_of(
        "N",
        [
            attempt(1, FUSED, plans={"fused_sum": "persistent"}),
            attempt(2, launches=2, kernels="sum | div", plans={"fused_sum": "split", "fused_mul": "pointwise"}),
        ],
    )
    assert flips(result)[1] == [
        ("kernels", "launches", "1", "2"),
        ("choice", "fused_sum", "persistent", "split"),
        ("verdict", "mul + sum", "fused: fused.vertical", "no such nodes"),
    ]


def test_a_size_that_failed_is_passed_over() -> None:
    failed = Attempt(SweptSize(value=2, error="ValueError (line 3): no"))
    result = result_of("N", [attempt(1, FUSED), failed, attempt(3, FUSED), attempt(4, SLOWER, kernels=APART)])
    assert [bool(marked) for marked in flips(result)] == [False, False, False, True]
    assert result.pairs[0].outcomes[1] is None
    assert result.verdict.endswith("at N = 4. 1 of 4 sizes failed.")


def test_where_nothing_flips_or_nothing_depends_on_the_size_it_is_said() -> None:
    assert result_of("N", [attempt(1, FUSED), attempt(2, FUSED)]).verdict == (
        "The compiler decides the same at all 2 sizes of N."
    )
    same = [attempt(1, FUSED), attempt(2, FUSED)]
    same[1].shapes = same[0].shapes
    assert "does not depend on it" in result_of("N", same).verdict
    assert "nothing to compare" in result_of("N", [attempt(1, FUSED)]).verdict


def test_what_is_too_much_to_list_is_counted_and_what_flips_is_listed_first() -> None:
    still: list[Answer] = [("sin", f"add_{place}", "fused", "fused.vertical") for place in range(MOST_PAIRS)]
    fused: list[Answer] = [("mul", f"sum_{place}", "fused", "fused.vertical") for place in range(MOST_FLIPS + 7)]
    refused: list[Answer] = [("mul", f"sum_{place}", "refused", "profit.slower") for place in range(MOST_FLIPS + 7)]
    nodes = sorted({node for answer in (*still, *fused) for node in answer[:2]})
    apart = " | ".join((" ".join(node for node in nodes if not node.startswith("sum")), *(a[1] for a in refused)))
    sizes = [attempt(1, *still, *fused, kernels=" ".join(nodes)), attempt(2, *still, *refused, kernels=apart)]
    result = result_of("N", sizes)
    assert (len(result.sizes[1].flips), result.sizes[1].more_flips) == (MOST_FLIPS, 7)
    assert (len(result.pairs), result.more_pairs) == (MOST_PAIRS, MOST_FLIPS + 7)
    assert all(pair.flips for pair in result.pairs[: MOST_FLIPS + 7]) and not result.pairs[-1].flips
