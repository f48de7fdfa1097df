"""Triton kernels from fused groups: `tile.py` chooses the tile, `ops.py` prints one op, `render.py` the kernel."""
