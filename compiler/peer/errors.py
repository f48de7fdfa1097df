"""How far everybody is from float64, output by output, for several seeds of the inputs.

The first is the snippet's own: what its calls were given. For each further one the arguments are drawn anew, as
`runtime/checking/gradients.py` says, and everybody runs on them: eager, ours, and whoever else compiled the calls. They
are no part of the verdict, which is of the calls that the snippet makes: what is wrong for another seed is told beside
it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from time import perf_counter
from typing import Any

from compiler.budget import Budget, OutOfTime
from compiler.capture.captured import Capture
from compiler.capture.reference import is_random
from compiler.report import CallErrors, ContestantErrors
from compiler.runtime.checking.gradients import CallReference, CheckedCall, graphs_of, reference_of
from compiler.runtime.checking.wrong_results import element_errors
from compiler.snippet_changes import SnippetChanges
from compiler.wording import counted

#: The snippet's own inputs, and these many more.
MORE_SEEDS = 2
#: Of what is left for the others, the part that may go into more seeds.
SHARE = 0.25


@dataclass
class References:
    """The calls of the snippet as eager and float64 have them, each made when it is first needed."""

    captured: Capture
    changes: SnippetChanges
    _known: dict[int, CallReference] = field(default_factory=dict)

    def of(self, position: int) -> CallReference:
        """That of one of the timed entries."""
        if position not in self._known:
            entry = self.captured.timed_entries[position]
            self._known[position] = reference_of(entry, graphs_of(entry, self.captured), self.changes)
        return self._known[position]

    def forget(self) -> None:
        """Give their memory back."""
        self._known.clear()


def errors_of_calls(
    references: References, functions: Mapping[str, Sequence[Callable[..., Any]]], seed: int, budget: Budget
) -> tuple[list[CallErrors], str]:
    """Of every entry, for the snippet's `seed` and as many further ones as there is time for; and which these are, in a
    sentence. `functions` has what each contestant made of the entries."""
    captured, part = references.captured, budget.share(SHARE)
    found: list[CallErrors] = []
    done: list[int] = []
    why = ""
    if any(is_random(graph) for entry in captured.timed_entries for graph in graphs_of(entry, captured)):
        return [], "Errors were not taken: random numbers are drawn, and each contestant draws others."
    for each in range(seed, seed + 1 + MORE_SEEDS):
        try:
            with part.stopping():
                started = perf_counter()
                rows = _of_seed(references, functions, each, each == seed)
        except OutOfTime:
            why = "there was no time for more (`max_seconds`)"
        except Exception as error:  # drawn values may be none that the function can be called with
            why = f"for the next, {type(error).__name__}: {error}".splitlines()[0][:200]
        else:
            found += rows
            done.append(each)
            if each == seed + MORE_SEEDS or part.fits(perf_counter() - started):
                continue
            why = "there was no time for more (`max_seconds`)"
        break
    return found, _sentence(done, why)


def _of_seed(
    references: References, functions: Mapping[str, Sequence[Callable[..., Any]]], seed: int, is_own: bool
) -> list[CallErrors]:
    captured, rows = references.captured, []
    for position, entry in enumerate(captured.timed_entries):
        graphs = graphs_of(entry, captured)
        call = references.of(position) if is_own else reference_of(entry, graphs, references.changes, seed)
        checked = {"compiled": call.ours()} if call.is_ours else {}
        checked |= {name: call.judged(made[position]) for name, made in functions.items()}
        rows += _rows(entry.name, seed, checked)
    return rows


def _rows(entry: str, seed: int, checked: Mapping[str, CheckedCall]) -> list[CallErrors]:
    """One row for each output with rounded values."""
    rows: dict[str, CallErrors] = {}
    for name, call in checked.items():
        for output, judged in call.judged:
            of = judged.elements or judged.eager_elements
            if of is None:
                continue
            known = CallErrors(
                entry=entry,
                output=output,
                seed=seed,
                dtype=str(of.dtype).removeprefix("torch."),
                elements=of.elements,
            )
            row = rows.setdefault(output, known)
            if not row.of and judged.eager_elements is not None:
                row.of.append(ContestantErrors(contestant="eager", errors=element_errors(judged.eager_elements)))
            errors = element_errors(judged.elements) if judged.elements is not None else None
            row.of.append(ContestantErrors(contestant=name, errors=errors, problem=judged.problem))
    return list(rows.values())


def _sentence(done: Sequence[int], why: str) -> str:
    if not done:
        return f"Errors of whole calls were not taken: {why}." if why else ""
    own, *others = done
    told = f"Errors are of {counted(len(done), 'seed')}: {own}, the snippet's own inputs"
    if others:
        drawn = " and ".join(map(str, others))
        told += f", and {drawn}, for which each floating argument has values drawn from its own"
    return f"{told}; {why}." if why else f"{told}."
