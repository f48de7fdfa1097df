"""The tile of a kernel: chosen once, for the price of a fusion and for its text.

choose                   the group as a GPU runs it, and its tile
plan                     what a tile is: loops, block sizes, warps
pointwise                rules without reductions
reductions               of reductions: which of the following
rows, lane_parts         of rows: in registers or in blocks, and short ones in parts;
columns, across          of columns, and of what is reduced both ways;
shared, cooperative,     of programs that share rows: in one pass, by exchanges,
look_back                and of running sums
programs, registers      what tiles go by: how many programs, and registers,
text                     which statements touch memory, how many instructions there are,
walk, vectors, passes    how memory is walked, and how often
loops                    loops in the form that a tile wants
"""
