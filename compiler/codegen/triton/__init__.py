"""Triton kernels from fused groups: `tile` chooses a plan, `render` prints the kernel.

plan                                    what a tile is: loops, block sizes, warps
tile_pointwise, tile_reduction          the plans by kind of group: no reduction, rows,
tile_columns, tile_across, tile_shared  columns, both ways, rows that programs share,
tile_windows, tile_lane_parts           and long windows, and short rows in parts
programs, tile_registers                what plans go by: how many programs, registers,
walk, vectors, lengths                  how memory is walked, and instructions
printer, frame, statements, ops         the text: lines, expressions; functions: special ones
helpers, module, writer                 what stands above it, and how lines are kept
reducing, states, extremes, kept        reductions of one value, of several values, with positions
scans, scanning, look_back              running ones: their kinds, of a block or a loop, of chunks that programs have
across, slices, shared_rows, clusters,  programs that join results, share rows, or share a launch (batch);
batch, product                          the kernel of a matrix product
fast_math, narrow_indices, logarithms   the same results by fewer instructions
constancy, interleaved, order, eviction or by wider accesses, sooner, or evicted first
float8, random                          numbers that Triton has not
levels                                  where values live by a plan, as the report shows it
"""
