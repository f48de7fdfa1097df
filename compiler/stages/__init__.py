"""The stages of an exploration, which `compiler/pipeline.py` calls in order.

exploration.py   what all stages share: options, device, time and report; how one stage is run and told of
graphs.py        what is handed on: the captured graphs, each with its compilation and its part of the report
compiling.py     capture, lower, schedule and codegen: from the snippet to kernels
running.py       run and emulate: whether the kernels are right
offline.py       the Triton twins of what runs on a CPU: assembled, and run in Triton's interpreter
measuring.py     measure and profile: how long calls and kernels take
comparing.py     compare: TorchInductor and other contestants on the same calls
shares.py        which part of the time each stage may take, and what is said where it was not enough
"""
