"""A kernel of a report as one Python file that runs alone, with plain torch, and Triton or a C++ compiler.

write       the file: inputs, the kernel's text, its launch, what it is compared with, its time
formula     what the kernel computes, as torch operations on whole tensors: the bodies of its loop nodes
eager       the same as PyTorch's own operators: the ATen nodes between what the kernel reads and what it writes
sizes       sizes and strides of buffers as numbers
launches    the kernel's launch: through ctypes, by Triton
texts       the parts of the file that are the same for every kernel

Nothing here runs a kernel, evaluates what a report says, or imports torch: the service writes such files too.
"""

from compiler.reproducer.write import NoReproducerError, reproducer

__all__ = ["NoReproducerError", "reproducer"]
