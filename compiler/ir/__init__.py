"""The loop IR: a closed set of ops over index expressions, traced once into immutable bodies.

`index.py` says where in a buffer, `size.py` how large (by `polynomials.py` where that is open), `ops.py` what is
computed, `body.py` is the record of one loop's body, `ranges.py` and `choices.py` leave out of it what is known
beforehand, `nodes.py` are the nodes that the scheduler fuses, and `interpret.py` says what all of it means.
"""
