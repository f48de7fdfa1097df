"""ATen to loop nodes: one function an operator, one file a family of operators.

`lower.py` walks a functional ATen graph and calls, for each node, the function that `registry.py` knows for its
operator; `outputs.py` says what the graph returns. `builder.py` and `loop_builder.py` are what such a function builds
nodes with, `values.py` what it takes and returns, `eager.py` and `strides.py` what eager's tensors look like, and
`promotion.py` in which dtypes eager computes. How to add one is told in `docs/adding_an_operator.md`, which has a line
for each family.
"""
