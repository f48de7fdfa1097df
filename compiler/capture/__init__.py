"""From a snippet to graphs: run it as its author would, and keep what it compiles.

capture                      the way through the folders
program                      the snippet runs as a program, or a function is called
recording                    its own `torch.compile`, and what torch tells of each compilation
autograd                     Dynamo's graphs through AOTAutograd
diagnosis                    guards, recompilations, breaks and errors in the snippet's words
captured, reference          what is left behind: graphs that can be run again, in float64 too
exact_operators              operators that torch has for narrow dtypes alone, for such a run
torch_state                  the state of torch that a call was made under
rounding_noise               what rounding may change, as noise in every step of such a run
slow_products                what of them a CPU has no instructions for
describe                     graphs in the report's terms
shortcuts                    what only saves time, of a first call and of the host
torch_internals              what is used of torch beyond its documentation
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
