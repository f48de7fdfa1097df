"""The text of single values.

statements, ops            statements as expressions; functions: special ones
helpers                    functions that kernels call
constancy, interleaved     the same values by wider accesses,
order, eviction            sooner, or evicted first
float8, random             numbers that Triton has not
"""
