"""C++ kernels from fused groups: `plan` lays out the loops, `render` prints the kernel, by these steps.

passes                            one pass over the reduction loops
reductions                        the variables of a reduction
scans                             the same of scans
statements, ops, functions        lines, expressions, and special functions above the kernel (writer)
across, lanes                     what is gathered across rows, or by each lane of a vector
kept                              what a later pass reads instead of computing it again
staging                           staging buffers of a vector loop: random numbers, halves as floats, transposed tiles
pieces                            loops cut where a condition changes
conditions                        indices that are made of conditions, as GCC takes them
collisions                        scatters that never meet
product                           what goes before and after the library's matrix products
include/                          the headers of every kernel
"""
