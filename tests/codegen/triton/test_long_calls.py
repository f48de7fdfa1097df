"""A call that is too long for a line stands on several, and says the same."""

from __future__ import annotations

import ast

from compiler.codegen.triton.writer import wrapped_call


def test_a_message_is_not_cut_at_its_commas() -> None:
    message = 'The values, of the "image" (all of them), must lie between zero and one, as floats'
    text = f"tl.device_assert({ast.unparse(ast.Constant(message))}, value_of_the_check & mask_of_the_rows, x_mask)"
    text = text.replace("'", '"').replace('"image"', r"\"image\"")
    wrapped = wrapped_call(text, 60)
    assert wrapped.count("\n") == 4
    assert ast.dump(ast.parse(wrapped)) == ast.dump(ast.parse(text))
