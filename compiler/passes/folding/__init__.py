"""Folding: what follows a convolution channel by channel goes into its filter, and the rest into the library's call.

    y = convolution(x, w)                            v = w * scale          of each channel
    z = relu(batch_norm(y) + r)             ->       z = convolution, + bias, + r, relu: one call of the library

Only with constant statistics is a batch norm a product and a sum for each channel. `chains` finds them, `fold` weighs
and rewrites, and `ir/library_calls.py` has the call. The filter is computed in each call, for parameters may change
between calls; what is saved is a pass over the result.

`bias` adds the biases of other convolutions, and of float32 products, in loops.
"""
