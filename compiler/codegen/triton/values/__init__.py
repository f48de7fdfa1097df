"""The text of single values.

statements, ops            statements as expressions; functions: special ones
helpers                    functions that kernels call
accesses, interleaved      the same values by wider accesses, sooner, or evicted first
float8, random             numbers that Triton has not
"""
