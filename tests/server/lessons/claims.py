"""The numbers that a lesson's text states: each must be bound to a value of the report, to the program, or be marked as
being about something else.

A number is written in digits, or as a word from two to twelve. Code between backticks, addresses of links and the
answers that are offered to choose from state nothing. A reason that the text names, `index.reversed`, has to be one
that the report gives.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from decimal import Decimal

from compiler.report import Report
from server.lessons.models import Claim, Step
from server.reasons import reasons
from server.report_paths import PathProblem, Value, value_at

WORDS = "two three four five six seven eight nine ten eleven twelve".split()
_NUMBER = re.compile(rf"(?<![\w.])(?:\d+(?:,\d{{3}})*(?:\.\d+)?|(?:{'|'.join(WORDS)})(?=\W|$))(?!\w)", re.IGNORECASE)
_CODE = re.compile(r"`([a-z_]+\.[a-z_]+)`")
_NO_STATEMENT = re.compile(r"`[^`]*`|\]\([^)]*\)|^\s*\d+\. ", re.MULTILINE)


def faults_of(step: Step, report: Report) -> list[str]:
    """What is wrong with the numbers in the text of a step whose program gave `report`: a sentence each."""
    text = prose_of(step)
    faults = [fault for claim in step.claims for fault in _faults_of_claim(claim, step, text, report)]
    bound = [place for claim in step.claims for place in _places(text, claim.text)]
    for number in _NUMBER.finditer(text):
        if not any(begin <= number.start() and number.end() <= end for begin, end in bound):
            around = text[max(0, number.start() - 30) : number.end() + 30].replace("\n", " ")
            faults.append(f"The number {number[0]} is bound to no check: … {around} …")
    given = _reasons_given(report)
    named = {name for name in _CODE.findall(f"{step.text} {step.reveal}") if name in reasons()}
    faults += [f"The text names the reason {name}, which the report does not give." for name in sorted(named - given)]
    return faults


def _reasons_given(report: Report) -> set[str]:
    given: set[str] = set()
    for graph in report.graphs:
        given |= {decision.reason for decision in graph.decisions}
        given |= {decision.reason for decision in graph.layouts}
    return given


def prose_of(step: Step) -> str:
    """All that a step says, without what states nothing; its length is that of the text."""
    question = step.question.text if step.question else ""
    text = "\n\n".join([step.title, step.text, question, step.reveal])
    return _NO_STATEMENT.sub(lambda found: " " * len(found[0]), text)


def _places(text: str, words: str) -> Iterator[tuple[int, int]]:
    """Where `words` stand in `text`, however its lines are broken."""
    pattern = r"\s+".join(re.escape(word) for word in words.split())
    return (found.span() for found in re.finditer(rf"(?<![\w.]){pattern}(?!\w)", text, re.IGNORECASE))


def _faults_of_claim(claim: Claim, step: Step, text: str, report: Report) -> Iterator[str]:
    if not any(_places(text, claim.text)):
        yield f"The text does not say {claim.text!r}."
    stated = _NUMBER.findall(claim.text)
    if not stated or (claim.kind == "report" and len(stated) > 1):
        yield f"{claim.text!r} states {len(stated)} numbers; a check is about one."
    elif claim.kind == "program":
        yield from (
            f"The number {number} of {claim.text!r} is not in the program."
            for number in stated
            if not _is_in(step.source, number)
        )
    elif claim.kind == "report":
        try:
            value = value_at(report, claim.path)
        except PathProblem as problem:
            yield f"{claim.text!r}: {problem}"
            return
        if not states(stated[0], value):
            yield f"The text says {claim.text!r}, and {claim.path} is {value}."


def _is_in(source: str, number: str) -> bool:
    return re.search(rf"(?<![\w.]){re.escape(number.replace(',', ''))}(?!\w)", source) is not None


def states(number: str, value: Value) -> bool:
    """Whether `number`, as a text writes it, is `value` to the digits that are written."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    written = Decimal(WORDS.index(number.lower()) + 2 if number.lower() in WORDS else number.replace(",", ""))
    digits = -int(written.as_tuple().exponent)
    return round(Decimal(str(value)), digits) == written
