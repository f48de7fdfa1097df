"""Triton kernels from fused groups: `plan.py` chooses the tile, `ops.py` prints one op, `render.py` the kernel."""
