"""Folding: what follows a convolution channel by channel goes into its filter, and the rest into the library's call.

    y = convolution(x, w)                            v = w * scale          of each channel
    z = relu(batch_norm(y) + r)             ->       z = convolution, + bias, + r, relu: one call of the library

Only with constant statistics is a batch norm a product and a sum for each channel. `chains` finds them, `call` is what
runs, `fold` weighs and rewrites. The filter is computed in each call, for parameters may change between calls; what is
saved is a pass over the result.

Two more rewrites of calls of convolutions: `patches` makes products of those whose windows do not overlap, and `bias`
adds the biases of the others in loops.

`depthwise` and `product_bias` leave the library for loops: a depthwise convolution, and a float32 product's bias.
`writing` is how calls come into a copy of a graph.
"""
