"""Keep the host's time of a call small: launches and allocations without repeated work.

launcher, quick_torch       kernels as builtin functions; torch's own short ways
flat                        a graph's wrapper as a list of steps, gone through without Python
seeds                       random numbers' seeds, drawn on the host
library_products, cublas    the library's products of matrices
host_values                 results of one element that the host reads while the GPU goes on
allocator                   freed memory stays in the process
"""
