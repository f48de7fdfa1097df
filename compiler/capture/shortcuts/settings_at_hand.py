"""Read torch's settings from a cache during a capture, in a tenth of the time.

Dynamo asks for a setting at each instruction that it follows, and for others at each tensor and guard: a hundred
thousand times in a DETR. `torch._dynamo.config` is a module whose settings are entries of a table, which Python gets to
after it has looked for the name everywhere else and has made an error of that. Within `settings_at_hand`, a property of
the module's class reads the same entry, and is found first. Who sets a setting, patches or deletes it, in all threads
or in one, is seen as ever, which `tests/capture/test_settings_at_hand.py` holds.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

from torch.utils._config_module import _UNSET_SENTINEL

#: Modules of settings, each of a class of its own; who reads one has imported it.
_READ_MOST = ("torch._dynamo.config", "torch._export.config", "torch.fx.experimental._config")

#: What an entry may have as its default for that to be given as it is; others are copied first.
_PLAIN = (bool, int, float, str, type(None))


@contextmanager
def settings_at_hand() -> Iterator[None]:
    """Within, the settings that are read most are read that way. A capture within another finds them so."""
    made: list[tuple[type, str]] = []
    try:
        for module in (sys.modules[name] for name in _READ_MOST if name in sys.modules):
            for name, entry in module._config.items():
                if name.isidentifier() and not hasattr(type(module), name) and _is_plain(entry):
                    setattr(type(module), name, property(_reader(entry)))
                    made.append((type(module), name))
        yield
    finally:
        for kind, name in made:
            delattr(kind, name)


def _is_plain(entry: Any) -> bool:
    """Whether the setting is what a program set it to, or else its default, and nothing else is to be done or asked."""
    from_outside = entry.env_value_force, entry.env_value_default
    return (
        all(value is _UNSET_SENTINEL for value in from_outside)
        and entry.alias is None
        and entry.justknob is None
        and not getattr(entry, "deprecated", False)
        and isinstance(entry.default, _PLAIN)
    )


def _reader(entry: Any) -> Callable[[Any], Any]:
    unset = _UNSET_SENTINEL

    def read(_: Any) -> Any:
        if entry.hide:
            raise AttributeError  # the module's own reading follows, which says of what
        value = entry.user_override
        return entry.default if value is unset else value

    def read_of_thread(_: Any) -> Any:
        if entry.hide:
            raise AttributeError
        value = entry.user_override.get()
        return entry.default if value is unset else value

    return read_of_thread if isinstance(entry.user_override, ContextVar) else read
