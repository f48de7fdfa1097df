"""What compiling took, by phase, in sentences."""

from __future__ import annotations

from compiler.report import Report
from server.figures import milliseconds


def compile_sentences(report: Report) -> list[str]:
    """One for ours and one for the peer; none where nothing was timed."""
    phases = report.compile_phases
    ours = [(one.phase, one.compiled_seconds) for one in phases if one.compiled_seconds is not None]
    peer = [(one.phase, one.peer_seconds) for one in phases if one.peer_seconds is not None]
    name = report.peer.name if report.peer is not None else "The peer"
    return [
        f"{whose} took {_shown(sum(seconds for _, seconds in each))} to compile: "
        f"{', '.join(f'{phase} {_shown(seconds)}' for phase, seconds in each)}."
        for whose, each in (("Ours", ours), (name, peer))
        if each
    ]


def _shown(seconds: float) -> str:
    return milliseconds(1e3 * seconds)
