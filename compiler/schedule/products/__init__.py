"""Matrix products: as loops that groups fuse with, the tiles of our own kernels, the library's own epilogues.

loops                            what a library call of a product computes
tiles, best_tile                 the tiles of our kernel, and which is taken
descriptors                      operands that come by whole tiles
library_epilogues                what the library does at the end of its own product
"""
