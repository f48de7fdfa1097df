"""Torch's own operator samples through the compiler: `fusionscope bench --suite opinfo`.

database.py    the operators and their samples, as plain functions of tensors
deferred.py    many samples through capture, lowering and scheduling, then one call of the C++ compiler for all
judge.py       is a result right: torch's own tolerances, or statistics where it is random
exceptions.py  every operator that is judged in another way, with the reason
packets.py     how many of the operators that TorchInductor lowers itself do we lower
worker.py      the process that samples run in
sweep.py       the sweep over all of them, in processes that are replaced when an operator kills one
"""
