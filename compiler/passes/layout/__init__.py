"""Layout: which convolutions work on channels-last tensors where eager's are contiguous.

    x (8, 64, 56, 56) in eager     strides (200704, 3136, 56, 1)     an image after another of one channel
    channels-last                  strides (200704, 1, 3584, 64)     all channels of one pixel side by side

The matrix units of a GPU take a convolution's channels as one side of a product, so the library's half-precision
kernels are made for channels-last, and given anything else they rearrange what they read and write, in every call. Here
that is decided once for all the convolutions that hang together: `decide` lowers the graph with them channels-last,
`passes/price.py` weighs what the library gains against what the conversions at the edges cost. What a graph returns has
eager's strides. In float32 the library may round in one layout and not in the other, which `rounding` finds out.
`training` has forward and backward graph agree, `choice` is the record, and what a report shows of it.

Two choices leave the library: `patches` makes products of convolutions whose windows do not overlap, and `depthwise`
makes loops of those that have a filter for each channel. `passed` is what the backward graph has to know of all this.
"""
