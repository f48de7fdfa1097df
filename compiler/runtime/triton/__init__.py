"""Triton kernels as functions: read, compiled once, kept on disk, launched.

source, text                                  a kernel's text as a function
compile, launch, graph_launchers              compiled for the GPU at hand, and launched
preparing, compile_helpers, compile_helper    at the same time, by other processes, beside what comes next
setup                                         what Triton makes once in a process
stages, assembler                             through what Triton takes a kernel, and how it is assembled
library, device_functions                     what a kernel is linked with
cache                                         what stays on disk
offline, targets, code_texts                  for a GPU that is not there; the text of each level, line by line
tuning                                        which way to run a product is fastest, measured
"""
