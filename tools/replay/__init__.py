"""Process replay: every program's kernels, before and after a change, and what is different between them.

    python -m tools.replay                      the working tree against where it left `main`
    python -m tools.replay v0.1 main            two revisions
    python -m tools.replay --programs fusion    the programs of `bench/fusion` in place of the goldens'

A refactoring must change nothing; a better rule must change what it was meant to change, and nothing else. Tests say
whether kernels are right; this says which ones are not the same (tinygrad's process replay does this in its CI).

    trees.py        a revision as a folder of files
    regenerate.py   one tree's programs through that tree's compiler, as JSON
    compare.py      two such documents: what changed in each program
    show.py         the changes as text
"""
