"""Triton kernels from fused groups: `tile` chooses a plan, `render` prints the kernel.

tile_reduction, tile_columns            the plans of reductions (others are in `schedule/tiles/`): rows, columns,
tile_across, tile_shared                both ways, rows that programs share,
tile_lane_parts                         and short rows in parts
programs, tile_registers                what plans go by: how many programs, and registers
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
