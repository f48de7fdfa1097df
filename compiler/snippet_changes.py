"""What a snippet changes in the process that runs it, set aside while the compiler works.

A snippet may replace `time.perf_counter`, `torch.Tensor.__sub__` or `len`, and leave modes, trace functions and signal
handlers behind. Its own functions are to meet all of that again whenever they are called. Nothing else is: what checks
and times them works with Python and torch as they were before the snippet ran.

So the process has two states, and `in_force` is the way from one to the other and back:

    changes = SnippetChanges()          remembers what there is
    with changes.in_force():            the snippet runs, or one of its functions is called
        run_snippet(...)
    judge(...)                          what it changed is set aside

Names of the `WATCHED` modules and of the classes that they hold, and torch's modes, are in force again with each call.
Hooks are taken away for good: trace and profile functions, signal handlers, timers, callbacks of the garbage collector
and filters of warnings. They say nothing about what a function computes.

This is no wall: code can reach all memory of its process. `docs/measuring.md` says what is left.
"""

from __future__ import annotations

import builtins
import gc
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from operator import is_ as _is
from signal import SIG_BLOCK, SIG_UNBLOCK, SIGALRM, pthread_sigmask
from time import perf_counter
from typing import Any

import torch
from torch.utils._device import DeviceContext

#: The modules whose names are remembered beside the builtins, with the classes that they hold: what checking and timing
#: are made of.
WATCHED = tuple(
    "collections contextlib copy dataclasses functools gc inspect io itertools math operator os random signal "
    "statistics subprocess sys threading time traceback types warnings weakref "
    "torch torch._C torch._ops torch._tensor torch.functional torch.overrides torch.random torch.library "
    "torch.autograd torch.autograd.function torch.autograd.grad_mode torch.autograd.graph torch.amp.autocast_mode "
    "torch.cuda torch.cuda.graphs torch.cuda.memory torch.cuda.random torch.cuda.streams torch.fx torch.fx.graph "
    "torch.fx.graph_module torch.fx.interpreter torch.fx.node torch.linalg torch.nn.functional torch.nn.modules.module "
    "torch.special torch.utils._contextlib torch.utils._device torch.utils._python_dispatch torch.utils._pytree".split()
)

#: Beside what can be called, the values of names that matter here. Others are state, which modules change as they work.
_MATTERS = (types.ModuleType, float, torch.dtype, property, classmethod, staticmethod)
#: What TorchDynamo itself replaces when it compiles for the first time. Nothing that checks or times calls it.
_REPLACED_BY_DYNAMO = frozenset({"Tracer.trace", "Module.__init__", "Module.__setstate__"})
#: Stands for a name that is not bound.
_GONE = object()
#: Flags of a class, as CPython has them: made at run time, and not to be changed.
_HEAP_TYPE, _IMMUTABLE_TYPE = 1 << 9, 1 << 8

#: Held from here on, for the moments in which builtins and modules may still be the snippet's.
_builtin_names = vars(builtins)
_get_trace, _set_trace, _get_profile, _set_profile = sys.gettrace, sys.settrace, sys.getprofile, sys.setprofile


class SnippetChanges:
    """What one snippet has changed; before it ran, nothing. A process has one at a time, for all runs of a snippet."""

    def __init__(self) -> None:
        self._builtins = _Builtins()
        self._names = _names_to_watch
        for names in self._names:
            names.remember()
        self._changed: list[_Names] = []
        self._modules = {name: sys.modules[name] for name in WATCHED if name in sys.modules}
        self._other_modules: dict[str, types.ModuleType] = {}
        self._modes = [_Modes(*stack) for stack in _STACKS]

    def in_force(self) -> AbstractContextManager[None]:
        """Within, all that the snippet changed is in force; afterwards it is set aside, with what is new."""
        return _InForce(self)

    def in_force_for_a_sample(self) -> AbstractContextManager[None]:
        """The same in microseconds. Of what is new, only builtins, modes and trace functions are set aside afterwards:
        whoever took the samples calls `set_aside` before anything else."""
        return _InForceForASample(self)

    def set_aside(self) -> None:
        """Look for what is new, and set it aside."""
        self._set_known_aside()
        for name, module in self._modules.items():
            if sys.modules.get(name) is not module:
                self._other_modules[name] = sys.modules.get(name, module)
                sys.modules[name] = module
        for names in self._names:
            if names.differ() and names.set_aside() and names not in self._changed:
                self._changed.append(names)

    def give_back(self) -> None:
        """Leave names as the snippet left them: a library that it imported may rely on what it has patched."""
        self._modes = [_Modes(*stack) for stack in _STACKS]
        self._put_in_force()
        self._changed.clear()

    def _put_in_force(self) -> None:
        sys.modules.update(self._other_modules)
        self._other_modules.clear()
        for modes in self._modes:
            modes.put_in_force()
        for names in self._changed:
            names.put_in_force()
        self._builtins.put_in_force()

    def _set_known_aside(self) -> None:
        self._builtins.set_aside()
        for names in self._changed:
            names.set_aside()
        for modes in self._modes:
            modes.set_aside()


class _NoChanges(SnippetChanges):
    def __init__(self) -> None:
        pass

    def in_force(self) -> AbstractContextManager[None]:
        return nullcontext()

    def in_force_for_a_sample(self) -> AbstractContextManager[None]:
        return nullcontext()

    def set_aside(self) -> None:
        pass

    def give_back(self) -> None:
        pass


#: For functions that are no snippet's.
NO_CHANGES: SnippetChanges = _NoChanges()


class _InForceForASample(AbstractContextManager[None]):
    """No generator: leaving one of those takes builtins, which are the snippet's at that moment. The alarm of a budget
    (`Budget.stopping`) waits until all is in its place."""

    def __init__(self, changes: SnippetChanges) -> None:
        self._changes = changes

    def __enter__(self) -> None:
        self._tracing = _get_trace(), _get_profile()
        pthread_sigmask(SIG_BLOCK, (SIGALRM,))
        self._changes._put_in_force()
        pthread_sigmask(SIG_UNBLOCK, (SIGALRM,))

    def __exit__(self, *_: object) -> None:
        pthread_sigmask(SIG_BLOCK, (SIGALRM,))
        trace, profile = self._tracing
        if _get_trace() is not trace:
            _set_trace(trace)
        if _get_profile() is not profile:
            _set_profile(profile)
        self._look_for_changes()
        pthread_sigmask(SIG_UNBLOCK, (SIGALRM,))

    def _look_for_changes(self) -> None:
        self._changes._set_known_aside()


class _InForce(_InForceForASample):
    def __enter__(self) -> None:
        self._hooks = _Hooks()
        super().__enter__()

    def _look_for_changes(self) -> None:
        self._changes.set_aside()
        self._hooks.put_back()


class _Builtins:
    """The builtins, without which no other line here can be relied on."""

    def __init__(self) -> None:
        self._before = dict(_builtin_names)
        self._left: dict[str, Any] = {}

    def set_aside(self) -> None:
        found = _builtin_names.copy()
        _builtin_names.update(self._before)
        if len(found) != len(_builtin_names) or not all(map(_is, found.values(), _builtin_names.values())):
            before = self._before
            self._left |= {name: now for name, now in found.items() if name in before and now is not before[name]}

    def put_in_force(self) -> None:
        left, self._left = self._left, {}
        _builtin_names.update(left)


class _Names:
    """The names of one module or class: what each stood for before the snippet ran, and what the snippet made of it."""

    def __init__(self, owner: types.ModuleType | type) -> None:
        self._owner = owner
        self._live = vars(owner)
        self._before = dict(self._live)
        self._left: dict[str, Any] = {}

    def remember(self) -> None:
        """From here on a snippet may run."""
        self._left = {}
        if self.differ():
            self._before = dict(self._live)

    def differ(self) -> bool:
        """Whether any name is bound to another object than before."""
        live, before = self._live, self._before
        return len(live) != len(before) or not all(map(_is, live.values(), before.values()))

    def set_aside(self) -> bool:
        """Bind each name to what it stood for, and note what the snippet had bound it to. Whether there was any."""
        for name in {**self._before, **self._live}:
            now, before = self._live.get(name, _GONE), self._before.get(name, _GONE)
            if now is not before and self._is_of_the_snippet(name, now, before):
                self._left[name] = now
                self._bind(name, before)
        self._before = dict(self._live)
        return bool(self._left)

    def put_in_force(self) -> None:
        left, self._left = self._left, {}
        for name, value in left.items():
            self._bind(name, value)

    def _is_of_the_snippet(self, name: str, now: Any, before: Any) -> bool:
        """Modules keep state in names, and get new ones when a part of their package is imported. A new name matters
        where it hides another one: in a class that of a base, in a module a builtin."""
        if f"{self._owner.__name__}.{name}" in _REPLACED_BY_DYNAMO:
            return False
        if before is not _GONE:
            return callable(before) or isinstance(before, _MATTERS)
        hides = hasattr(self._owner.__base__, name) if isinstance(self._owner, type) else name in _builtin_names
        return hides and callable(now)

    def _bind(self, name: str, value: Any) -> None:
        if not isinstance(self._owner, type):
            names = vars(self._owner)
            names.pop(name, None) if value is _GONE else names.update({name: value})
        elif value is not _GONE:
            type.__setattr__(self._owner, name, value)
        elif name in self._live:
            type.__delattr__(self._owner, name)


def _watched() -> Iterator[types.ModuleType | type]:
    seen: set[type] = set()
    for name in WATCHED:
        module = sys.modules.get(name)
        if module is None:
            continue
        yield module
        for value in list(vars(module).values()):
            if isinstance(value, type) and value not in seen and _can_change(value):
                seen.add(value)
                yield value


def _can_change(owner: type) -> bool:
    return bool(owner.__flags__ & _HEAP_TYPE) and not owner.__flags__ & _IMMUTABLE_TYPE


#: Made once, when the compiler is imported: a process that was forked to run a snippet only looks for what is new.
_names_to_watch = [_Names(owner) for owner in _watched()]


class _Modes:
    """torch's modes, which stand on two stacks of the thread; those of one. The default device is a mode too; what sets
    it takes it away itself, and finds it only where it put it."""

    def __init__(self, count: Callable[[], int], pop: Callable[[], Any], push: Callable[[Any], None]) -> None:
        self._count, self._pop, self._push = count, pop, push
        self._left: list[Any] = []
        #: The compiler's own, which were there when the snippet's came into force.
        self._own: list[Any] = []

    def put_in_force(self) -> None:
        self._own = self._popped()
        self._push_all([*self._left, *self._own])

    def set_aside(self) -> None:
        modes = self._popped()
        self._left = [mode for mode in modes if not self._is_own(mode)]
        self._push_all([mode for mode in modes if self._is_own(mode)])

    def _is_own(self, mode: Any) -> bool:
        return isinstance(mode, DeviceContext) or any(mode is own for own in self._own)

    def _popped(self) -> list[Any]:
        """All of them, the outermost first; none is left on the stack."""
        return [self._pop() for _ in range(self._count())][::-1]

    def _push_all(self, modes: list[Any]) -> None:
        for mode in modes:
            self._push(mode)


#: What counts, pops and pushes the modes of each stack, as torch's own context managers use it.
_STACKS = (
    (torch._C._len_torch_function_stack, torch._C._pop_torch_function_stack, torch._C._push_on_torch_function_stack),
    (
        torch._C._len_torch_dispatch_stack,
        partial(torch._C._pop_torch_dispatch_stack, None),
        torch._C._push_on_torch_dispatch_stack,
    ),
)


class _Hooks:
    """What runs between two steps of a program, and limits of the interpreter, as they are now."""

    def __init__(self) -> None:
        self._is_main = threading.current_thread() is threading.main_thread()
        self._handlers = {number: signal.getsignal(number) for number in _SIGNALS}
        self._since, self._timers = perf_counter(), {which: signal.getitimer(which) for which in _TIMERS}
        self._callbacks = list(gc.callbacks)
        self._filters = list(warnings.filters)
        self._recursion_limit, self._switch_interval = sys.getrecursionlimit(), sys.getswitchinterval()

    def put_back(self) -> None:
        for which, (left, interval) in self._timers.items():
            left_now, interval_now = signal.getitimer(which)
            if interval_now != interval or left_now > left or (left and not left_now):
                left = max(left - (perf_counter() - self._since), 1e-6) if left else 0.0
                signal.setitimer(which, left, interval)
        for number, handler in self._handlers.items():
            if self._is_main and signal.getsignal(number) is not handler:
                signal.signal(number, signal.SIG_IGN)  # a signal on its way is forgotten by this
                signal.signal(number, signal.SIG_DFL if handler is None else handler)
        gc.callbacks[:] = self._callbacks
        if list(warnings.filters) != self._filters:
            warnings.resetwarnings()  # tells torch's and Python's caches of filters; then they are as they were
            warnings.filters.extend(self._filters)  # type: ignore[attr-defined]  # typeshed has a sequence
        if sys.getrecursionlimit() < self._recursion_limit:
            sys.setrecursionlimit(self._recursion_limit)
        sys.setswitchinterval(self._switch_interval)


_SIGNALS = tuple(signal.valid_signals())
_TIMERS = (signal.ITIMER_REAL, signal.ITIMER_VIRTUAL, signal.ITIMER_PROF)
