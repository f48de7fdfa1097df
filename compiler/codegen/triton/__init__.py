"""Triton kernels from fused groups: `tile` makes a plan of the tile of a group, `render` prints the kernel.

printer, frame, statements, ops         the text: lines, expressions; functions: special ones
helpers, module, writer                 what stands above it, and how lines are kept
reducing, states, kept                  reductions of one value, of several values, with positions
scans, scanning, look_back              running ones: their kinds, of a block or a loop, of chunks that programs have
across, slices, shared_rows, clusters,  programs that join results, share rows, or share a launch (batch);
batch, product                          the kernel of a matrix product
fast_functions                          what the approximations of `schedule/program/fast_math.py` call
constancy, interleaved, order, eviction the same results by wider accesses, sooner, or evicted first
float8, random                          numbers that Triton has not
levels                                  where values live by a plan, as the report shows it
"""
