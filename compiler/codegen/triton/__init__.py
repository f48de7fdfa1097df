"""Triton kernels from fused groups: `render` makes a plan of the tile of a group, and prints the kernel.

printer                the text of a kernel, one class for each way by which programs share rows
module, writer         what stands above it, and how lines are kept
values/                single values: statements as expressions
reductions/            values that lanes, blocks or programs make together
batch                  kernels that share a launch
product                the kernel of a matrix product
levels                 where values live by a plan, as the report shows it
"""
