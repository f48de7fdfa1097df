"""What is kept of every decision: the pair, its reason, its score, both ways, what would have changed it.

`reasons.py` is the one closed list of reasons.
"""
