"""What calls cost the host, kept small: launches and allocations without what is the same at every call.

launcher, quick_torch       kernels as builtin functions; torch's own short ways
flat                        a graph's wrapper as a list of steps, gone through without Python
seeds                       random numbers' seeds, drawn on the host
library_products, cublas    the library's products of matrices
host_values                 results of one element that the host reads while the GPU goes on
allocator                   freed memory stays in the process
"""
