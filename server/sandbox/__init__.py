"""Confining a job: what the kernel offers to an ordinary process, asked for through ctypes, one module a means.

`confine` does all of it, once, in a fresh child: `landlock` for files and the network, `code_access` for what must stay
readable. `processes` ends what a job leaves behind, and `kernel` has the calls that Python has no function for.
"""
