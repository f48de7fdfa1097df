"""From a snippet to graphs: run it as its author would, and keep what it compiles."""

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
