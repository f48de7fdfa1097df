"""The text of single values.

statements, ops            statements as expressions; functions: special ones
helpers                    functions that kernels call
fast_functions             those of the approximations of `schedule/program/fast_math.py`
constancy, interleaved     the same values by wider accesses,
order, eviction            sooner, or evicted first
float8, random             numbers that Triton has not
"""
