"""Which buffers reach memory, how long they live, whose storage they take over, and the order that needs least.

plan, lifetimes              buffers and their storage
order, peaks                 when what runs, and which fusions cost memory
read_again                   what a later kernel would find in the cache
written_back                 what is written to the caller's memory in the first place
"""
