"""Kernels as functions: compiled, kept, launched, checked and timed.

executable              the wrapper with its kernels, ready to be called
triton, cpp             kernels, compiled and launched (interpreter: Triton's on a CPU)
host                    what calls cost the host
checking                is it right? Against float64, and beside eager's own error
timing                  how long does it take?
trial                   a graph tried on the inputs of the snippet
traffic, first_sizes    what eager moves; sizes of the first call
disk_cache              what stays on disk
preload                 for a process that forks others to compile in
"""
