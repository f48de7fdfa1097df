"""Triton kernels on CPU tensors, by Triton's own interpreter, to check what they compute.

interpreter    a launch, run
text           a kernel's text as functions for it
cooperative    kernels whose programs wait for each other
work           how much work a launch is
"""
