"""The loop IR: a closed set of ops over index expressions, traced once into immutable bodies.

index                           where in a buffer
size, polynomials               how large, and the arithmetic of what is open
formulas, formula_names         numbers that Python makes of sizes, and what formulas are called
ops, functions, float8, value   what is computed; long formulas by name, and how they are written
body, nodes                     the record of one loop's body, and the nodes that the scheduler fuses
interpret                       what all of it means, and what sizes are in one call
ranges, choices                 what is known beforehand and left out
index_formulas, masked_indices  values and indices that are formulas of the loops
positions, canonical            points and their offsets in memory; loops in their simplest form
overlap                         bytes of several parts of one memory
library_calls                   calls beside PyTorch's own: what ours become
lazy                            values that an object computes when they are first asked for
"""
