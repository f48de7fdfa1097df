"""TorchInductor on the same graph, in our terms: compiled by `inductor.py`, timed beside ours by `compare.py`.

`launches.py` reads what its wrapper launches, and `preload.py` imports it ahead of time. Nothing else of the compiler
knows TorchInductor.
"""
