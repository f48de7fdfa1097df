"""Optional shortcuts of a first call, and of the host's time in every call. Results are the same without them.

traced_once, written_again           what AOTAutograd does but once for calls whose inputs are alike
while_captured, settings_at_hand     the same of Dynamo, while it captures for us
formulas_once, kinds_checked_once    and of torch's arithmetic of open sizes
numbers_of_modules                   floats of modules fixed, so that open sizes are not traced twice
thin_calls                           what a call costs before its graph
"""
