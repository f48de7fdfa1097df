"""TorchInductor on the same graph, in our terms: compiled by `inductor.py`, timed beside ours by `compare.py`.

Nothing else of the compiler knows TorchInductor.
"""
