"""From a snippet to graphs: run it as its author would, and keep what it compiles.

capture, snippet, output, device              the snippet runs as a program
top_level_calls, forms, inputs                what to call where it compiles nothing
called                                        a function of this process in the place of a snippet
intercept, recorder, ledger                   the snippet's own `torch.compile`, and what is kept of each compilation
captured, reference, replay                   what is left behind: graphs that can be run again, in float64 too
rounding_noise                                what rounding may change, as noise in every step of such a run
slow_products                                 what of them a CPU has no instructions for
aot, training                                 through AOTAutograd: operators taken apart, a joint graph, split in two
traced_once, decomposed_once, written_again   what it does but once for calls whose inputs are alike
while_captured, settings_at_hand              the same of Dynamo, while it captures for us
formulas_once, kinds_checked_once             and of torch's arithmetic of open sizes
running_products                              gradients that torch 2.11 makes too long
saved_places, draws, repeats                  what passes from the one to the other, and what its split would lose
regions, repeated_writes, fixed_sizes         what is rewritten first, or compiled for the sizes of one call alone
shared_memory, unmet_sizes                    calls left to eager mode: of inputs that overlap, of refused sizes
written_back, thin_calls, short_code          what a call costs before and after its graph (read_outputs)
guards, comparisons, recompiles               what the code was compiled for, in the snippet's words (sources, symbols)
breaks, break_kinds, errors                   where it ended, on which line, and what to do about it
describe, naming, without_effect, artefacts   graphs and torch's own texts in the report's terms
torch_internals, torch_trace                  what is used of torch beyond its documentation
"""

from compiler.capture.capture import capture
from compiler.capture.captured import Capture, CapturedGraph, EntryCall, GraphRunner
from compiler.capture.describe import describe_fx
from compiler.capture.reference import is_random, reference_run

__all__ = [
    "Capture",
    "CapturedGraph",
    "EntryCall",
    "GraphRunner",
    "capture",
    "describe_fx",
    "is_random",
    "reference_run",
]
