"""Keep the host's time of a call small: launches and allocations without repeated work.

launcher, quick_torch       kernels as builtin functions; torch's own short ways
flat                        a graph's wrapper as a list of steps, gone through without Python
library_products, cublas    the library's products of matrices
allocator                   freed memory stays in the process
"""
