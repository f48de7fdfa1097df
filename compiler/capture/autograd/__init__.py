"""From Dynamo's graph to ATen graphs: decompositions, gradients, the split in two, and repairs of what torch loses.

aot, training, naming                 through AOTAutograd: a joint graph, split; its inputs by their names
repeated_writes                       what is left to eager mode before
overlaps                              elements of memory that tensors have in common
expansions                            writes through expanded views and idle dropouts, which torch makes inexact
fixed_sizes                           what is compiled for the sizes of one call alone
running_products                      gradients that torch makes too long
draws                                 what the split would lose: numbers drawn again
signs                                 gradients that come in with signs that are only noted
shared_memory                         calls left to eager mode: of inputs that overlap
written_back, without_effect          inputs written to after a call; calls that no result needs
"""
