"""Optional shortcuts of a first call, and of the host's time in every call. Results are the same without them.

traced_once                         what AOTAutograd runs twice
while_captured                      what Dynamo does, while it captures for us
formulas_once                       torch's arithmetic of open sizes
thin_calls                          what a call costs before its graph
"""
