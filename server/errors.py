"""How far outputs are from float64, as rows of a table: of graphs, and of whole calls with everybody who gave them."""

from __future__ import annotations

from compiler.report import CallErrors, ElementErrors, OutputErrors, Peer

COLUMNS = ("output", "of", "largest error", "mean error", "largest, ulp", "mean, ulp")


def error_rows(errors: list[OutputErrors]) -> list[list[str]]:
    """Of each output of a graph, eager's and ours."""
    return [
        [one.output, whose, *_figures(each)]
        for one in errors
        for whose, each in (("eager", one.eager), ("compiled", one.compiled))
        if each is not None
    ]


def call_rows(peer: Peer) -> list[list[str]]:
    """Of each result and gradient of a call, for every seed, everybody's who can be compared."""
    return [
        [_output(call), one.contestant, *_figures(one.errors)]
        for call in peer.errors
        for one in call.of
        if one.errors is not None
    ]


def call_sentences(peer: Peer) -> list[str]:
    """For which seeds there are errors, and who gave what rounding does not explain."""
    strayed = [
        f"{_output(call)} by {one.contestant} {one.problem}."
        for call in peer.errors
        for one in call.of
        if one.problem is not None
    ]
    return [sentence for sentence in (peer.seeds, *strayed) if sentence]


def _output(call: CallErrors) -> str:
    return f"{call.output} of {call.entry}, seed {call.seed}"


def _figures(errors: ElementErrors) -> list[str]:
    return [f"{value:.2g}" for value in (errors.largest, errors.mean, errors.largest_ulp, errors.mean_ulp)]
