"""From fused groups to text, by two printers of one kernel program.

loops, building, naming    a group becomes a `program`: statements by level, in passes, each with a name
single_pass                two of its passes as one
triton/, cpp/              the tile or the loops that a device wants, and the text of the kernel (`rendered`)
functions, operators       what both printers share
wrapper                    the Python function that allocates, launches and calls libraries
"""
