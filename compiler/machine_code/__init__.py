"""One kernel on its way down to machine code, for any target and without a device.

of_report       the kernel of a report as an exploration of its own: its text, and what it is compiled with
levels          that exploration: a kernel's text in, a report with `machine_code` out
triton          Triton's levels, TTIR to SASS or AMD's assembly; its passes
cpp             the C++ compiler's assembly, and what it made vectors of
instructions    what instructions do: their mix, the width of loads and stores, matrix units
occupancy       how many warps a multiprocessor holds, by NVIDIA's rules

The text of each level, with the source's line of each of its lines, is made by `runtime/triton/code_texts.py`.

The text may be anybody's: it is only compiled where snippets are run. `of_report` and the report's models import no
torch: the service uses them.
"""
