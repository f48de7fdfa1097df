"""Confining a job: what the kernel offers to an ordinary process, asked for through ctypes, one module a means."""
