"""TorchInductor and other contestants on the same calls, if asked for.

The others come last: all of ours is published before they begin. Only the sweep has to come after them, as it captures
anew, and what was compiled before is gone then.
"""

from __future__ import annotations

from compiler import report as rep
from compiler.budget import unstopped
from compiler.capture.program.output import silenced
from compiler.stages.exploration import Exploration
from compiler.stages.graphs import Timed
from compiler.stages.measuring import note_times_of_kernels
from compiler.stages.shares import peer_left_out


def compare(exploration: Exploration, timed: Timed) -> None:
    from compiler.peer.compare import compare_with_peer

    graphs, report = timed.graphs, exploration.report
    budget = exploration.share("others")
    if not budget.fits(graphs.call_seconds):
        report.peer = rep.Peer(message=peer_left_out(graphs.call_seconds))
        return

    def publish(peer: rep.Peer, timing: rep.TimingResult | None) -> None:
        """What the peer made is on the page before others are asked, and before anybody is timed."""
        with unstopped():
            report.peer, report.timing = peer, timing or report.timing
            exploration.on_stage(report)

    with silenced():
        compared = compare_with_peer(
            graphs.capture,
            exploration.options,
            report.timing,
            exploration.is_wrong,
            budget,
            exploration.turns,
            exploration.changes,
            report.graphs,
            publish,
        )
    report.peer, report.timing = compared.peer, compared.timing
    report.wrong_results += compared.wrong
    report.compile_phases = graphs.compile_phases(compared.phases)
    errors = {"eager": report.summary.eager_error, "compiled": report.summary.compiled_error}
    for one in compared.peer.contestants:
        one.max_error = errors.get(one.name, one.max_error)
    note_times_of_kernels(exploration, timed)
