"""C++ kernels from fused groups: `plan.py` lays out the loops, `ops.py` prints one op, `render.py` the kernel."""
