"""From fused groups to text, by two printers of one kernel program.

building, naming           a group becomes a program (`schedule/program/`): statements by level, each with a name
rest                       rows a little longer than a tile
lane_parts                 short rows in parts of a few lanes
triton/, cpp/              the tile or the loops that a device wants, and the text of the kernel (`rendered`)
functions, operators       what both printers share
same_code                  which kernels are one code but for names
wrapper, library_products  the Python function that allocates, launches and calls libraries
on_host                    which results a kernel may write to the host's memory
"""
