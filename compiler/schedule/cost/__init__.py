"""Predict the time of a kernel on a device: how it will run, what it asks for, and its microseconds.

`kernel.py` predicts; `shape.py` says how a group will run by its tile (programs, threads, passes), `work.py` what it
then asks of the device, by how it touches memory (`touches.py`) and what its instructions take (`slots.py`); `moved.py`
counts bytes and `flops.py` operations without predicting.
"""
