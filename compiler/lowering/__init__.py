"""ATen to loop nodes: one function an operator, one file a family of operators.

`lower.py` walks a functional ATen graph and calls, for each node, the function that `registry.py` knows for its
operator. `builder.py` is what such a function builds nodes with, `values.py` what it takes and returns. How to add
one is told in `docs/adding_an_operator.md`.
"""
