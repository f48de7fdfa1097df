"""Import TorchInductor ahead of time, for a process that forks one child for each exploration.

A child that had to import it would wait a second before the peer's first kernel. The precompiled header that it makes
by default takes ten seconds, longer than the compilation of the one snippet that it would speed up.

While it is imported, TorchInductor asks whether there is a GPU. For the answer torch starts the library that manages
NVIDIA's GPUs, whose thread stays, and a process with several threads must not fork. Device files answer here instead.
"""

from pathlib import Path
from unittest import mock

import torch

with mock.patch.object(torch.cuda, "is_available", Path("/dev/nvidiactl").exists):
    import torch._inductor.compile_fx

import torch._inductor.config

torch._inductor.config.cpp_cache_precompile_headers = False
