"""How the code was captured, in sentences: for the terminal and for the Markdown summary alike."""

from __future__ import annotations

from compiler.report import GradientCheck, Graph, GraphBreak, Recompile, Report, Rewrite
from compiler.wording import counted, line_list
from server.plain_text import code

#: Guards of one graph that a text shows: the first ones are about the call's own arguments.
MOST_GUARDS = 12


def break_sentences(found: GraphBreak) -> list[str]:
    """What happened where, what would help, and between which graphs."""
    often = f", met {found.count} times" if found.count > 1 else ""
    reason = found.reason if found.reason.endswith((".", "!", "?")) else f"{found.reason}."
    sentences = [f"{found.title or 'a graph break'}{at(found.line)}{often}: {reason}"]
    if found.remedy:
        sentences.append(found.remedy)
    around = [f"ended {', '.join(found.before)}"] if found.before else []
    around += [f"went on in {', '.join(found.after)}"] if found.after else []
    return [*sentences, "It " + " and ".join(around) + "."] if around else sentences


def recompile_sentence(found: Recompile) -> str:
    made = f"; {found.graph} was made" if found.graph else ""
    opened = ", which leaves open " + ", ".join(code(name) for name in found.symbolic) if found.symbolic else ""
    return f"{found.function}{at(found.line)}: {found.reason}{made}{opened}."


def guard_sentences(graph: Graph) -> list[str]:
    """The changes of a call that this graph does not serve, at most `MOST_GUARDS`, and how many more there are."""
    told = [
        (f"line {guard.lines[-1]}: " if guard.lines else "") + (guard.fails_when or guard.expression)
        for guard in graph.guards[:MOST_GUARDS]
    ]
    more = len(graph.guards) - len(told)
    return [*told, f"and {more} more, which the JSON report has"] if more > 0 else told


def symbol_sentences(graph: Graph) -> list[str]:
    return [
        f"{code(symbol.source)} is left open: {symbol.range}"
        + (f", {symbol.value} when traced" if symbol.value else "")
        for symbol in graph.symbols
    ]


def training_sentences(graph: Graph) -> list[str]:
    """Of a backward graph: what its forward graph kept for it, and what it computes again."""
    kept = [saved for saved in graph.saved if saved.kind == "activation"]
    if not graph.saved and not graph.recomputed:
        return []
    names = ", ".join(f"{saved.node} ({saved.dtype}{saved.shape})" for saved in kept)
    sentences = [f"saved for it by {graph.partner}: {counted(sum(saved.bytes for saved in kept), 'byte')}"]
    if names:
        sentences[0] += f" in {names}"
    if graph.recomputed:
        sentences.append(f"computed again and not saved: {', '.join(graph.recomputed)}")
    return sentences


def check_sentences(report: Report) -> list[str]:
    """What became of checking training from end to end."""
    return [
        f"{check.entry}: {check.name} is {'right' if check.is_correct else 'wrong'}: {_errors_of(check)}"
        for check in report.gradients
    ]


def _errors_of(check: GradientCheck) -> str:
    if check.compiled_error is None:
        return "it cannot be compared with float64"
    beside = {"eager's {:.1e}": check.eager_error, "{:.1e} allowed": check.allowed_error}
    said = [words.format(error) for words, error in beside.items() if error is not None]
    return ", ".join([f"error {check.compiled_error:.1e} against float64", *said])


def rewrite_sentences(graph: Graph) -> list[str]:
    """What was replaced before the graph was compiled, and what nearly was and why not."""
    return [_rewrite_sentence(found) for found in graph.rewrites]


#: What became of what is rewritten, after its name.
_REPLACED = {
    "attention": "was replaced by one library call",
    "mask": "was simplified",
    "one-hot sum": "was replaced by the numbers of each row that are not zero",
    "picked numbers": "get their gradients row by row",
    "pooling places": "are saved in four bytes each",
}


def _rewrite_sentence(found: Rewrite) -> str:
    where = f" ({line_list(found.lines)})" if found.lines else ""
    fate = _REPLACED[found.what] if found.verdict == "replaced" else "was kept as written"
    detail = f" {found.detail.rstrip('.')}." if found.detail else ""
    return f"{found.what}{where} {fate}: {found.message}{detail}" + (f" {found.remedy}" if found.remedy else "")


def all_recompiles(report: Report) -> list[Recompile]:
    return [found for graph in report.graphs for found in graph.recompiles]


def at(line: int | None) -> str:
    return "" if line is None else f" at line {line}"
