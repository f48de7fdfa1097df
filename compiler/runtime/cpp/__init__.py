"""C++ kernels as functions, on a CPU.

compiler            a shared library, compiled once and kept on disk
instruction_sets    for which instructions
library             a graph's kernels, loaded and called
product_steps       a product of the library with what is fused into it
"""
