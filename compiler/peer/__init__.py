"""TorchInductor on the same graphs, in our terms, and whoever else may run the same calls.

`inductor.py` asks TorchInductor and listens to it, through `launches.py`, which reads what its wrapper launches.
`generated.py` reads the text that it generates. `our_terms.py` makes kernels of our graphs of that, by the nodes that
`counterparts.py` finds for its own, and `aligned.py` sets both compilers' kernels side by side. `contestants.py` is
the registry of all others; `compare.py` is the stage, which checks and times them beside ours. `apart.py` tells who
would end the process, and `errors.py` how far everybody is from float64. `preload.py` imports TorchInductor ahead of
time, and `kernel_text.py` reads one of its kernels for whoever compiles that alone. Nothing
else of the compiler knows TorchInductor.
"""
