"""Take a float of a module for fixed until it changes, where sizes are open from the first call.

    self.eps, dropout.p, self.scaling      guarded by its value; open once a later call finds another

With `dynamic=True` Dynamo makes an input of each float. AOTAutograd's pass that turns floats into tensors then finds
that an operator wants a number, such as the `eps` of a layer norm, and Dynamo begins again with that fixed: all models
of layers are traced twice. Integers of modules are fixed by torch itself. A float that does change is compiled for once
more, as it is without `dynamic=True`.
"""

from __future__ import annotations

from contextlib import AbstractContextManager
from typing import Any
from unittest import mock

from torch._dynamo import config
from torch._dynamo.variables.builder import VariableBuilder


def numbers_of_modules_fixed() -> AbstractContextManager[Any]:
    """Within, Dynamo captures them that way."""
    by_torch = VariableBuilder.wrap_symfloat

    def wrap(builder: VariableBuilder, value: float) -> Any:
        if not builder.source.guard_source.is_unspecialized_nn_module():  # type: ignore[union-attr]
            return by_torch(builder, value)
        with mock.patch.object(config, "assume_static_by_default", True):
            return by_torch(builder, value)

    return mock.patch.object(VariableBuilder, "wrap_symfloat", wrap)
