"""What is changed of a graph before it becomes loops. `order` is the one list of passes; a folder has those of a kind.

rewrite          of Dynamo's graph and of the joint graph of a training step: attention, masks, gradients of indices
complex_numbers  complex numbers as pairs of real ones
padding          products whose sizes eight does not divide, made a little larger
folding          what follows a convolution, in its filter and its call; biases, in loops
layout           which convolutions work channels-last, or are no call of the library at all

`price` is what all of them predict of a call of the library, and `writing` how calls come into a graph.
"""
