"""How long does it take? Times that can be compared, and what they must be read together with.

measure, stopwatch      rounds of contestants; one sample
noise                   when two times differ
clocks                  the clocks and the state of a GPU
kernel_times            each kernel alone, and whether they add up to the call that launches them
tracing                 a call as the profiler records it
"""
