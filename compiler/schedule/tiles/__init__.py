"""The tile of a kernel: chosen once, for the price of a fusion and for its text.

plan                     what a tile is: loops, block sizes, warps
lanes                    which groups have programs that know nothing of each other, and the tile of these
pointwise, windows       its rules: without reductions, and of long windows that a lane goes over by itself
loops                    loops in the form that a tile wants
text, lengths            what tiles go by: which statements touch memory, how many instructions there are
walk, vectors            and how memory is walked

Rules of other reductions stand in `codegen/triton/tile_reduction.py`, and `cost/shape.py` foresees what they choose.
"""
