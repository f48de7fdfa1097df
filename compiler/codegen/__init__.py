"""From fused groups to text, by two printers of one kernel program.

naming                     names for the values of a kernel program (`schedule/program/`)
triton/, cpp/              the tile or the loops that a device wants, and the text of the kernel (`rendered`)
functions                  what both printers share
same_code                  which kernels are one code but for names
wrapper, library_products  the Python function that allocates, launches and calls libraries
"""
