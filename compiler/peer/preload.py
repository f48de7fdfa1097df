"""Import TorchInductor ahead of time, for a process that forks one child for each exploration.

A child that had to import it would wait a second before the peer's first kernel. The precompiled header that it makes
by default takes ten seconds, longer than the compilation of the one snippet that it would speed up.
"""

import torch._inductor.compile_fx
import torch._inductor.config

torch._inductor.config.cpp_cache_precompile_headers = False
