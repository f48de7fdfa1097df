"""Replaying a graph's launches as one CUDA graph: when that is legal, when it pays, and how a call then goes.

decision.py   the closed list of outcomes, each with a sentence
legality.py   what of a schedule may be recorded at all
price.py      what a replay saves the host, and what it costs
inputs.py     which inputs stay where they are, and which are copied
outputs.py    what of a replay belongs to the caller
replayed.py   the call itself: watch, decide, record, replay
recorder.py   the recorder that uses CUDA; everything else is plain Python
"""
