"""The snippet as a program: parsed, fitted to the device, run, and asked for what there is to explore in it.

snippet, device, output    the text as `__main__`: what `cuda` means in it, and what it prints
notebook                   lines of a notebook that are no Python
absent                     packages that it imports and that are not installed
loading                    loaders of its data, without their worker processes
called                     a function of this process in the place of a snippet
forms, inputs              what to call where nothing was called, and with what
top_level_calls            which functions, modules and methods it calls at top level
script                     what it computes at top level, as a function
"""
