"""Shape sweep: one snippet at many sizes, and the sizes at which the compiler decides otherwise.

    sizes.py     which sizes a snippet names, and the snippet with another number in one of them
    running.py   each size on its own, first compiled, then measured while time lasts
    flips.py     what is not as it was at the size before

Sizes are put into the snippet's text: each is compiled as if the author had written it there.
"""
