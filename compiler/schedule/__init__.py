"""The scheduler: which loop nodes become one kernel, in which order kernels run, in which memory.

Read `scheduler.py` first: what is done, in order. The rest, by the question that it answers:

    what is there       units, group, form, names, products
    what is asked       search (which pair next), rules/ (each kind of fusion), wishes and forced (what the user asks)
    is it legal         legality, inline, classify, reasons (the closed list of answers)
    does it pay         work (bytes and issue slots), shape (programs, threads, passes), cost, product_tiles, moved
    how is it run       ways, single_pass, team, recompute, unroll (extremes), windows, library_epilogues
    when, and where     order, order_search, lifetimes, memory, peaks
    what is told of it  decisions, scores, choices, would_fuse, alike, describe and its kin

Legality knows nothing of profit, and neither decides: a rule answers with `Fuse` or `Refuse`, both values.
"""
