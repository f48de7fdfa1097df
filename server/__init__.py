"""The service: HTTP in front, a queue behind it, one confined worker at the end.

A request becomes an exploration (`explorations.py`), which is looked up in the store (`store.py`) or put in the
queue (`jobs.py`) and run by a process of its own (`worker/`), confined by `sandbox/`. Nothing in here compiles
anything: that is the business of the `compiler` package, which knows nothing of this one.
"""
