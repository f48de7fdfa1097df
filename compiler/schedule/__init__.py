"""The scheduler: which loop nodes become one kernel, in which order kernels run, in which memory.

Read `scheduler.py` first: what is done, in order. The rest, by the question that it answers:

    what is there       units, group, form, names, products/
    what is asked       search (which pair next), rules/ (each kind of fusion), directives and forced (by the user)
    is it legal         legality, inline, concatenation (written part by part), attribution (what leads to a part)
    does it pay         cost/
    by which tile       tiles/
    how is it run       reduction_strategies, recompute, unroll (extremes), windows (together), interleaved, first_seed
    what memory sees    vectors
    what a kernel does  program/: the statements of a group, by level and in passes
    when, and where     memory/
    what is told of it  records/ (reasons.py: the closed list of answers), describe/ (as the report shows it)

Legality knows nothing of profit, and neither decides: a rule answers with `Fuse` or `Refuse`, both values. What
differs in names alone is asked once (`once`).
"""
