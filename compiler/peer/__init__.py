"""TorchInductor on the same graph, in our terms: compiled by `inductor.py`, timed beside ours by `compare.py`.

`launches.py` reads what its wrapper launches, `preload.py` imports it ahead of time, and `kernel_text.py` reads one of
its kernels for whoever compiles that alone. Nothing else of the compiler
knows TorchInductor.
"""
