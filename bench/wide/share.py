"""A process's share of the wide suite: all of its programs are compiled and checked, then all of them are timed."""

from __future__ import annotations

import gc
from collections.abc import Callable, Mapping, Sequence

from bench.contest import DeviceLost, Prepared, Setup, fresh_caches, prepare_case, sentence_of, time_case
from bench.patterns import Case

Send = Callable[..., None]


def run_share(cases: Mapping[str, Sequence[str]], known: Mapping[str, Case], setup: Setup, send: Send) -> None:
    """Run each case with its contestants. What is said through `send` is the worker's protocol.

    One process at a time measures (`setup.turns`), with all of its programs in one turn: programs are many and short,
    and a turn for each would have every process wait for all others again. No compile seconds are reported, since
    other processes compile on the same cores. Raises `DeviceLost` where the GPU is of no more use to this process."""
    prepared: dict[str, Prepared] = {}
    with fresh_caches():
        for name, contestants in cases.items():
            try:
                prepared[name] = prepare_case(known[name], contestants, setup, _telling(send, name))
                prepared[name].outcome.compile_s.clear()
            except DeviceLost:
                raise
            except Exception as error:  # a case that fails is a result, and the next one goes on
                send("case", case=name, result={"errors": {"case": sentence_of(error)}})
        # What was compiled stays until the end, and looking through it before each timing takes longer than that does.
        gc.collect()
        gc.freeze()
        with setup.turns.alone():
            for name in list(prepared):
                send("case", case=name, result=time_case(prepared.pop(name), setup, _telling(send, name)))
        gc.unfreeze()


def _telling(send: Send, case: str) -> Callable[[str], None]:
    return lambda what: send("start", case=case, what=what)
