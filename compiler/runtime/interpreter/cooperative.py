"""Interpreting a kernel whose programs wait for each other.

The interpreter runs one program at a time. Here each program is a thread, and one of them has the turn: it runs until
it ends or has to wait, and hands the turn to the next one that has not ended.
"""

from __future__ import annotations

import threading
from collections import Counter, deque
from collections.abc import Callable
from typing import Any

import numpy as np
import triton.language as tl

#: The functions of kernels whose programs wait for each other.
WAITING = ("wait_for", "receive", "cluster_wait")
#: Bytes of a value that a program of a cluster leaves.
FLOAT = 4


def run_in_turns(
    count: int, choose: Callable[[int], None], run: Callable[[], None], namespace: dict[str, Any], cluster: int
) -> None:
    """Run `count` programs, `cluster` of which are one; `choose` makes the interpreter work for the program of a
    number, `run` runs it. The functions of `namespace` that wait, or reach into other programs, are replaced by ones
    that give the turn away."""
    turns = _Turns(choose, run, cluster)
    replaced = ("wait_for", "receive", "open_gate", "cluster_arrive", "cluster_wait", "leave", "wait_at", "left_by")
    namespace |= {name: getattr(turns, name) for name in replaced}
    turns.run_all(count)


class _Turns:
    def __init__(self, choose: Callable[[int], None], run: Callable[[], None], cluster: int) -> None:
        self.choose = choose
        self.run = run
        self.cluster = cluster
        #: How often each program has arrived, what it has left for its cluster, the bytes that it waits for at each of
        #: its gates, and those that it has left at this gate of each program.
        self.arrivals = Counter[int]()
        self.left: dict[int, list[float]] = {}
        self.gates: dict[int, list[int]] = {}
        self.sent = Counter[tuple[int, int]]()
        self.turn = [threading.Semaphore(0)]
        self.back = threading.Semaphore(0)
        self.current = 0
        self.errors: list[BaseException] = []

    def run_all(self, count: int) -> None:
        self.turn = [threading.Semaphore(0) for _ in range(count)]
        self.is_done = [False] * count
        waiting = deque(range(count))
        threads = [threading.Thread(target=self._program, args=(number,), daemon=True) for number in waiting]
        idle = 0
        started: set[int] = set()
        while waiting:
            number = self.current = waiting.popleft()
            self.choose(number)
            self.progressed = number not in started
            if number not in started:
                started.add(number)
                threads[number].start()
            self.turn[number].release()
            self.back.acquire()
            if self.errors:
                for turn in self.turn:  # what has it given to it fails in its place, so that no thread waits for ever
                    turn.release()
                raise self.errors[0]
            idle = 0 if self.progressed or self.is_done[number] else idle + 1
            if not self.is_done[number]:
                waiting.append(number)
            if idle > count:
                raise RuntimeError("every program waits for another one")

    def _program(self, number: int) -> None:
        self.turn[number].acquire()
        try:
            with np.errstate(all="ignore"):
                self.run()
        except BaseException as error:
            self.errors.append(error)
        self.is_done[number] = True
        self.back.release()

    def wait_for(self, counter: Any, count: Any) -> None:
        """In the place of the kernel's own function of this name."""
        wanted = int(count)
        while int(tl.load(counter).handle.data.reshape(-1)[0]) < wanted:
            self._give_turn_away()
        self.progressed = True

    def receive(self, pointer: Any, launch: Any) -> Any:
        """In the place of the kernel's own function of this name."""
        words = tl.load(pointer)
        while np.any(((words & 0xFFFFFFFF) != launch).handle.data):
            self._give_turn_away()
            words = tl.load(pointer)
        self.progressed = True
        return (words >> 32).to(tl.int32).to(tl.float32, bitcast=True)

    def open_gate(self, expected: Any) -> int:
        """In the place of the kernel's own function of this name: the number of the gate among a program's."""
        gates = self.gates.setdefault(self.current, [])
        gates.append(int(expected))
        return len(gates) - 1

    def cluster_arrive(self) -> None:
        """In the place of the kernel's own function of this name."""
        self.arrivals[self.current] += 1

    def cluster_wait(self) -> None:
        """In the place of the kernel's own function of this name."""
        while any(self.arrivals[other] < self.arrivals[self.current] for other in self._cluster()):
            self._give_turn_away()
        self.progressed = True

    def leave(self, value: Any, gate: Any) -> int:
        """In the place of the kernel's own function of this name: the number of the value among a program's."""
        mine = self.left.setdefault(self.current, [])
        mine.append(float(value.handle.data.reshape(-1)[0]))
        self.sent[self.current, int(gate)] += FLOAT
        return len(mine) - 1

    def wait_at(self, gate: Any) -> None:
        """In the place of the kernel's own function of this name."""
        expected = self.gates[self.current][int(gate)]
        while sum(self.sent[other, int(gate)] for other in self._cluster()) < expected:
            self._give_turn_away()
        self.progressed = True

    def left_by(self, number: int, parts: Any) -> Any:
        """In the place of the kernel's own function of this name."""
        cluster = self._cluster()
        values = [self.left[cluster[part]][number] for part in parts.handle.data]
        result = parts.to(tl.float32)
        result.handle.data = np.array(values, np.float32)
        return result

    def _cluster(self) -> range:
        first = self.current - self.current % self.cluster
        return range(first, first + self.cluster)

    def _give_turn_away(self) -> None:
        number = self.current
        self.back.release()
        self.turn[number].acquire()
        if self.errors:
            raise RuntimeError("another program has failed")
