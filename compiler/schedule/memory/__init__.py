"""Which buffers reach memory, how long they live, whose storage they take over, and the order that needs least.

plan, lifetimes              buffers and their storage; what later kernels read again
order, peaks                 when what runs, and which fusions cost memory
"""
