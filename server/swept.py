"""A sweep as text, for the terminal and for Markdown: one table of its sizes, and a sentence for each flip."""

from __future__ import annotations

from compiler.report import Flip, Report, SweepResult, SweptSize
from server.figures import microseconds
from server.wrong import wrong_sentences

MARK = "←"


COLUMNS = ("launches", "bytes", "predicted", "measured", "eager", "compiled", "flips")


def swept_table(report: Report) -> tuple[list[str], list[list[str]]]:
    """Columns and rows. A column in which nothing is known is left out; the last one marks the sizes that flip."""
    assert report.sweep is not None
    columns = [report.sweep.name, *COLUMNS]
    rows = [_row(size) for size in report.sweep.sizes]
    known = [place for place in range(len(columns)) if place == 0 or any(row[place] for row in rows)]
    return [columns[place] for place in known], [[row[place] for place in known] for row in rows]


def columns_sentence(report: Report) -> str:
    """What the times in the table are, and of which device."""
    assert report.sweep is not None
    environment = report.environment
    told = []
    if any(size.predicted_us is not None for size in report.sweep.sizes):
        told.append(f"Predicted for {environment.target}: the generated kernels.")
    if any(size.compiled_ms is not None for size in report.sweep.sizes):
        told.append(f"Measured on {environment.device}: the generated kernels, and whole calls, eager and compiled.")
    return " ".join(told)


def _row(size: SweptSize) -> list[str]:
    counts = [size.launches, size.bytes]
    times = [size.predicted_us, size.measured_us, _in_us(size.eager_ms), _in_us(size.compiled_ms)]
    return [
        str(size.value),
        *("" if count is None else f"{count:,}" for count in counts),
        *("" if time is None else microseconds(time) for time in times),
        _mark(size),
    ]


def _mark(size: SweptSize) -> str:
    if size.wrong_results:
        return "wrong result"
    return "failed" if size.error else MARK if size.flips else ""


def _in_us(milliseconds: float | None) -> float | None:
    return None if milliseconds is None else 1000 * milliseconds


def sweep_sentences(sweep: SweepResult) -> list[str]:
    """What flips at each size, what is wrong or went wrong at it, and what was not measured."""
    sentences = []
    for size in sweep.sizes:
        at = f"{sweep.name} = {size.value}"
        sentences += [f"{at}: {sentence}" for sentence in wrong_sentences(size.wrong_results)]
        sentences += [f"{at}: {flip_sentence(flip)}" for flip in size.flips]
        if size.more_flips:
            sentences.append(f"{at}: and {size.more_flips} more.")
        if size.error is not None:
            sentences.append(f"{at}: {size.error}")
    return sentences if sweep.message is None else [*sentences, sweep.message]


def flip_sentence(flip: Flip) -> str:
    what = {"verdict": flip.about, "kernels": flip.about, "choice": f"the loops of {flip.about}"}[flip.kind]
    return f"{what}: {flip.before} → {flip.after}"
