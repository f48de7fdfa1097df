"""Matrix products: as loops that groups fuse with, the tiles of our own kernels, the library's own epilogues."""
