"""Explain in terms of the snippet why code was compiled again, where a graph ended, and what failed.

guards, comparisons, recompiles    what a graph was compiled for, and which guard failed
breaks, break_kinds                where a graph ended, why, and what keeps it whole
errors, sources                    exceptions of the snippet; names of what Dynamo calls by its own
"""
