"""A fused group as what one kernel does: which the scheduler prices, and code is generated from.

program       the phases of a kernel over one tile: statements by level, in passes
statements    from the bodies of a group to such statements,
build         and to a program of them
lane_parts    short rows in parts of a few lanes
single_pass   two passes over a row made one: sums relative to another result of it
narrow        whole numbers in 32 bits
fast_math     the same results by fewer instructions of a GPU
"""
