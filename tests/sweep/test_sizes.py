"""Which sizes a snippet names, and the snippet with another number in one of them."""

from __future__ import annotations

import ast
from collections.abc import Iterator

import pytest

from compiler.options import InputSpec, Options
from compiler.sweep.sizes import MOST_OFFERED, UnknownSize, offered, sizes_of, with_size

FORMS = """import torch
N = 1024
B, M = 4, 2 * N
WIDTH: int = 1 << 6
SCALE = 0.5
twice = 1
twice = 2
x = torch.randn(B, N)  # größer
if __name__ == "__main__":
    rows = (
        8 +
        8)
for step in range(3):
    pass

def f(x: f32[8, 16], y: "bf16[32]", flag: bool = True):
    inner = 3
    return x.sum() + y.sum()
"""


def values(source: str, options: Options | None = None) -> dict[str, int]:
    """Sizes that have a name of their own."""
    sizes = sizes_of(source, options or Options())
    return {name: size.value for name, size in sizes.items() if not name.isdigit()}


def test_whole_numbers_of_the_top_level_and_dimensions_of_arguments_are_sizes() -> None:
    inputs = (InputSpec(shape=(3, 5)), InputSpec(shape=()))
    assert values(FORMS, Options(inputs=inputs)) == {
        **{"N": 1024, "B": 4, "M": 2048, "WIDTH": 64, "rows": 16},
        **{"x.shape[0]": 8, "x.shape[1]": 16, "y.shape[0]": 32},
        **{"inputs[0].shape[0]": 3, "inputs[0].shape[1]": 5},
    }


@pytest.mark.parametrize(
    ("name", "before", "after"),
    [
        ("N", "N = 1024", "N = 77"),
        ("B", "B, M = 4, 2 * N", "B, M = 77, 2 * N"),
        ("M", "B, M = 4, 2 * N", "B, M = 4, 77"),
        ("WIDTH", "WIDTH: int = 1 << 6", "WIDTH: int = 77"),
        ("x.shape[1]", "x: f32[8, 16]", 'x: "float32[8, 77]"'),
        ("x.shape[-1]", "x: f32[8, 16]", 'x: "float32[8, 77]"'),
        ("y.shape[0]", 'y: "bf16[32]"', 'y: "bfloat16[77]"'),
    ],
)
def test_only_the_number_is_replaced(name: str, before: str, after: str) -> None:
    assert before in FORMS
    assert with_size(FORMS, Options(), name, 77)[0] == FORMS.replace(before, after)


def test_a_number_over_several_lines_is_replaced_and_a_number_beside_it_is_not() -> None:
    changed, _ = with_size(FORMS, Options(), "rows", 77)
    assert values(changed) == values(FORMS) | {"rows": 77}


def test_every_line_of_an_annotation_keeps_its_place() -> None:
    source = "def f(x: f32[8,\n             16],\n      y: f32[4]):\n    return x\n"
    changed, _ = with_size(source, Options(), "x.shape[0]", 77)
    ast.parse(changed)
    assert changed.splitlines()[2:] == source.splitlines()[2:]
    assert values(changed) == values(source) | {"x.shape[0]": 77}


def test_two_names_of_one_number_stay_one() -> None:
    changed, _ = with_size("A = B = 4\n", Options(), "A, B", 77)
    assert changed == "A = B = 77\n"


def test_several_sizes_take_the_same_value() -> None:
    changed, _ = with_size(FORMS, Options(), "x.shape[0], y.shape[0] ,N", 77)
    assert values(changed) == values(FORMS) | {"x.shape[0]": 77, "y.shape[0]": 77, "N": 77, "M": 154}


def test_a_number_is_replaced_wherever_it_is_written() -> None:
    source = (
        "import torch\nlayer = torch.nn.Linear(4096, 4_096)\nx = torch.randn(8, 4096)  # 4096\nprint('4096', 40960)\n"
    )
    changed, _ = with_size(source, Options(), "4_096", 77)
    assert changed == source.replace("(4096, 4_096)", "(77, 77)").replace("(8, 4096)", "(8, 77)")
    assert with_size("N = 64\nx = f(N, 64)\n", Options(), "N, 64", 77)[0] == "N = 77\nx = f(N, 77)\n"
    assert with_size("N = 64\n", Options(), "N, 64", 77)[0] == "N = 77\n"


def test_sizes_are_offered_by_name_and_numbers_that_stand_elsewhere_too() -> None:
    source = "N = 1024\ndef f(x: f32[64, 32]):\n    return x.sum(-1) + 3\nf(g(N, 1024, 512))\n"
    assert [str(size) for size in offered(source, Options())] == [
        *("N (1024, line 1)", "x.shape[0] (64, line 2)", "x.shape[1] (32, line 2)"),
        *("512 (line 4)", "1024 (lines 1, 4)"),
    ]
    many = offered("\n".join(f"x = f({100 + place})" for place in range(50)), Options())
    assert len(many) == MOST_OFFERED
    assert offered("N = = 4", Options()) == [] == offered("x = " + "-" * 9000 + "4", Options())


def test_a_long_snippet_is_not_read_again_for_each_of_its_names(monkeypatch: pytest.MonkeyPatch) -> None:
    looks = 0
    children = ast.iter_child_nodes

    def counted(node: ast.AST) -> Iterator[ast.AST]:
        nonlocal looks
        looks += 1
        return children(node)

    monkeypatch.setattr(ast, "iter_child_nodes", counted)
    sizes_of("N = 64\n" * 20, Options())
    of_the_short, looks = looks, 0
    sizes_of("N = 64\n" * 200, Options())
    assert 0 < looks < 11 * of_the_short


def test_a_dimension_of_an_input_of_the_request_is_changed_there() -> None:
    options = Options(inputs=(InputSpec(shape=(3, 5)), InputSpec(shape=(7,), dtype="int64")))
    source, changed = with_size("def f(a, b): return a", options, "inputs[0].shape[-1]", 77)
    assert source == "def f(a, b): return a"
    assert changed.inputs == (InputSpec(shape=(3, 77)), InputSpec(shape=(7,), dtype="int64"))


def test_a_source_with_other_line_ends_and_wide_characters_is_cut_at_the_right_byte() -> None:
    source = '"""Größe → size"""\r\né = "ü"; N = 8; M = 9\r\n'
    assert with_size(source, Options(), "N", 77)[0] == source.replace("N = 8", "N = 77")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("K", "The snippet names no size 'K'. Its sizes are N (1024, line 2), B (4, line 3), M (2048, line 3), "),
        ("twice", "twice is assigned more than once, at lines 6, 7, so it is no one size."),
        ("SCALE", "SCALE, assigned at line 5, is not written as a whole number."),
        ("x", "x, assigned at line 8, is not written as a whole number."),
        ("inner", "The snippet names no size 'inner'."),
        ("step", "step, assigned at line 13, is not written as a whole number."),
        ("x.shape[2]", "The snippet names no size 'x.shape[2]'."),
        ("x.shape[-3]", "The snippet names no size 'x.shape[-3]'."),
        ("N, K", "The snippet names no size 'K'."),
        ("", "The snippet names no size ''."),
        ("__import__('os')", "The snippet names no size"),
    ],
)
def test_what_is_no_size_is_said_with_those_that_are(name: str, said: str) -> None:
    with pytest.raises(UnknownSize) as refused:
        with_size(FORMS, Options(), name, 77)
    assert str(refused.value).startswith(said) and "Its sizes are N (1024, line 2)" in str(refused.value)


def test_where_there_is_no_size_at_all_it_is_said_how_to_write_one() -> None:
    with pytest.raises(UnknownSize, match=r"It names none at all: write one at top level, as in `N = 1024`"):
        with_size("import torch\nx = torch.randn(8)\n", Options(), "N", 77)


@pytest.mark.parametrize("text", ["9 ** 9 ** 9", "1 << 10 ** 9", "1 // 0", "-5", "True", "1e3", "len('abc')"])
def test_what_is_no_plain_number_is_no_size_and_is_not_worked_out(text: str) -> None:
    assert values(f"N = {text}\n") == {}
