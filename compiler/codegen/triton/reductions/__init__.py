"""The text of values that several lanes, blocks or programs make together.

reducing, states, kept     reductions of one value, of several values, with positions
scans                      running ones, of a block or a loop,
look_back                  of chunks that programs have
across                     programs that join results,
shared_rows, teams         or share rows,
clusters                   and the functions by which they wait for each other
"""
