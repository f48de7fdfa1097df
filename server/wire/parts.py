"""A report in parts: what is sent when a stage has ended, checked when it comes, and kept in the store.

A part is one field of the report, named by its JSON pointer, `/summary`, or one field of one of its graphs,
`/graphs/0/kernels`. `/graphs` alone is how many graphs there are. A stage changes few of them: only those are sent, as
one JSON object from pointers to values, and parts that did not change are the same bytes for whoever keeps them.

`Sent` is used by the process that explores; it is quick and trusts its report. `Parts` is used by the service, which
trusts nothing: what comes is parsed strictly, checked against the report's own models, and written anew.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Annotated, Any

from pydantic import TypeAdapter, ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import from_json, to_json

from compiler.report import Graph, Report

SERVICE_FIELDS = frozenset({"version", "id", "source", "options", "based_on", "observed"})
"""Fields that the service writes itself: nobody who explores is asked for them, or believed."""

MOST_GRAPHS = 4096
"""Far more than the captures that one snippet may make."""

MOST_READ_BYTES = 32 * 1024
"""Of a part that web reads while the exploration runs: many times what one has that is honest."""
_READ = frozenset({"/environment", "/stages"})

GRAPHS = "/graphs"
_IN_GRAPH = re.compile(r"/graphs/(0|[1-9]\d{0,5})/(\w+)")


class PartsRejected(Exception):
    """What came is not a change of a report; the message says why, and quotes nothing of it at length."""


def _adapter(field: FieldInfo) -> TypeAdapter[Any]:
    annotation: Any = field.annotation
    for constraint in field.metadata:
        annotation = Annotated[annotation, constraint]
    return TypeAdapter(annotation)


_REPORT_FIELDS = {name: _adapter(field) for name, field in Report.model_fields.items() if name != "graphs"}
_GRAPH_FIELDS = {name: _adapter(field) for name, field in Graph.model_fields.items()}
_NEW_GRAPH = {
    name: _GRAPH_FIELDS[name].dump_json(field.get_default(call_default_factory=True))
    for name, field in Graph.model_fields.items()
    if not field.is_required()
}


def split(report: Report) -> dict[str, bytes]:
    """Every part of `report`, by its pointer, as JSON."""
    parts = {f"/{name}": adapter.dump_json(getattr(report, name)) for name, adapter in _REPORT_FIELDS.items()}
    parts[GRAPHS] = str(len(report.graphs)).encode()
    for number, graph in enumerate(report.graphs):
        for name, adapter in _GRAPH_FIELDS.items():
            parts[f"/graphs/{number}/{name}"] = adapter.dump_json(getattr(graph, name))
    return parts


def join(parts: Mapping[str, bytes]) -> bytes:
    """The whole report as JSON: the same bytes as `Report.model_dump_json`, of whatever `split` made."""
    return b"".join(text for before, value in in_order(parts) for text in (before, value))


def in_order(parts: Mapping[str, bytes]) -> Iterator[tuple[bytes, bytes]]:
    """Every part as it stands in the whole report, and what stands before it; the end comes with an empty part."""
    before = b"{"
    for name in Report.model_fields:
        before += b'"%s":' % name.encode()
        if name == "graphs":
            before += b"["
            for number in range(int(parts[GRAPHS])):
                before += b"{" if number == 0 else b",{"
                for field in _GRAPH_FIELDS:
                    yield before + b'"%s":' % field.encode(), parts[f"/graphs/{number}/{field}"]
                    before = b","
                before = b"}"
            before += b"]"
        else:
            yield before, parts[f"/{name}"]
            before = b""
        before += b","
    yield before[:-1] + b"}", b""


def as_object(parts: Mapping[str, bytes], names: Iterable[str]) -> bytes:
    """Those parts that are named, as one JSON object from pointers to values."""
    return b"{" + b",".join(b'"%s":%s' % (name.encode(), parts[name]) for name in names) + b"}"


class Sent:
    """What the other side has of a report, and so what it lacks of a newer one."""

    def __init__(self) -> None:
        self._parts: dict[str, bytes] = {}

    def changed(self, report: Report) -> bytes:
        """The payload that brings the other side from the report before to this one; b"" where nothing changed."""
        parts = split(report)
        for name in SERVICE_FIELDS:
            parts.pop(f"/{name}", None)
        names = [name for name, value in parts.items() if self._parts.get(name) != value]
        self._parts = parts
        return as_object(parts, names) if names else b""


class Parts:
    """The parts of one report as they came, checked. `most_bytes` bounds all of them together."""

    def __init__(self, report: Report, most_bytes: int) -> None:
        """Begins with `report`, which is the service's own."""
        self._parts = split(report)
        self._bytes = sum(_size(name, value) for name, value in self._parts.items())
        self._most_bytes = most_bytes

    def __getitem__(self, name: str) -> bytes:
        return self._parts[name]

    def __contains__(self, name: str) -> bool:
        return name in self._parts

    @property
    def size(self) -> int:
        return self._bytes

    @property
    def graphs(self) -> int:
        return int(self._parts[GRAPHS])

    def all(self) -> dict[str, bytes]:
        """A copy: the bytes are shared, and never change."""
        return dict(self._parts)

    def take(self, payload: bytes) -> list[str]:
        """Takes a change from whoever explores, whole or not at all; the pointers of what differs now. It takes as long
        as the change is large, however large the report has become. Raises `PartsRejected`, as `checked` and `replace`.
        """
        return self.replace(checked(payload, self.graphs))

    def put(self, report: Report) -> list[str]:
        """Takes what the service itself says the report is; the pointers of what differs now."""
        parts = split(report)
        return self.replace({**dict.fromkeys(self._parts.keys() - parts.keys()), **parts})

    def write(self, **fields: Any) -> list[str]:
        """Takes what the service itself says of some fields, `summary=...`; the pointers of what differs now.

        Not bounded: a report that has just found room can still be concluded."""
        return self._set({f"/{name}": _dumped(name, value) for name, value in fields.items()})

    def write_of_graph(self, number: int, **fields: Any) -> list[str]:
        """The same of one graph."""
        return self._set(
            {f"/graphs/{number}/{name}": _GRAPH_FIELDS[name].dump_json(value) for name, value in fields.items()}
        )

    def join(self) -> bytes:
        return join(self._parts)

    def report(self) -> Report:
        return Report.model_validate_json(self.join())

    def head(self) -> Report:
        """The report without its graphs, which are nearly all of it."""
        return Report.model_validate_json(join({**self._parts, GRAPHS: b"0"}))

    def field(self, name: str) -> Any:
        """One field of the report, as its model has it."""
        return _REPORT_FIELDS[name].validate_json(self._parts[f"/{name}"])

    def replace(self, changes: Mapping[str, bytes | None]) -> list[str]:
        """Takes what `checked` gives. Raises `PartsRejected` where the report gets too large."""
        total = self._bytes + self._growth(changes)
        if total > self._most_bytes:
            raise PartsRejected(f"The report has {total} bytes; at most {self._most_bytes} are allowed.")
        return self._set(changes)

    def _set(self, changes: Mapping[str, bytes | None]) -> list[str]:
        different = {name: value for name, value in changes.items() if self._parts.get(name) != value}
        self._bytes += self._growth(different)
        # Never in place: another thread may be reading.
        parts = self._parts.copy()
        for name, value in different.items():
            if value is None:
                del parts[name]
            else:
                parts[name] = value
        self._parts = parts
        return [name for name, value in different.items() if value is not None]

    def _growth(self, changes: Mapping[str, bytes | None]) -> int:
        return sum(_size(name, value) - _size(name, self._parts.get(name)) for name, value in changes.items())


def checked(payload: bytes, graphs: int) -> dict[str, bytes | None]:
    """What becomes of the parts of a report that has so many graphs: those of `payload`, written anew, those that a new
    graph begins with, and None for those of a graph that goes.

    Raises `PartsRejected` for what is no JSON (NaN, infinities and half characters are none), names no part, or is not
    of the part's type.
    """
    try:
        values = from_json(payload, allow_inf_nan=False, cache_strings="keys")
        # A number such as 1e999 is read as infinite. A text may well hold that word, so this only asks for a look.
        if b"Infinity" in to_json(values, inf_nan_mode="constants"):
            json.dumps(values, allow_nan=False)
    except (ValueError, RecursionError) as failure:
        raise PartsRejected(f"It is no JSON: {str(failure)[:200]}.") from None
    if not isinstance(values, dict):
        raise PartsRejected("It is no JSON object.")
    count = values.pop(GRAPHS, graphs)
    if not isinstance(count, int) or isinstance(count, bool) or not 0 <= count <= MOST_GRAPHS:
        raise PartsRejected(f"A report has up to {MOST_GRAPHS} graphs.")
    changes: dict[str, bytes | None] = {GRAPHS: str(count).encode()}
    for number in range(count, graphs):
        changes.update({f"/graphs/{number}/{name}": None for name in _GRAPH_FIELDS})
    for number in range(graphs, count):
        if f"/graphs/{number}/name" not in values:
            raise PartsRejected(f"Graph {number} has no name.")
        changes.update({f"/graphs/{number}/{name}": value for name, value in _NEW_GRAPH.items()})
    for name, value in values.items():
        changes[name] = _written(name, value, count)
    return changes


def _size(name: str, value: bytes | None) -> int:
    return 0 if value is None else len(name) + len(value)


def _dumped(name: str, value: Any) -> bytes:
    return _REPORT_FIELDS[name].dump_json(value)


def _written(name: str, value: Any, graphs: int) -> bytes:
    """`value` as the part called `name` writes it. Raises `PartsRejected`."""
    found = _IN_GRAPH.fullmatch(name)
    if found is not None:
        adapter = _GRAPH_FIELDS.get(found[2]) if int(found[1]) < graphs else None
    else:
        field = name.removeprefix("/")
        adapter = _REPORT_FIELDS.get(field) if name.startswith("/") and field not in SERVICE_FIELDS else None
    if adapter is None:
        raise PartsRejected(f"There is no part {name[:80]!r}.")
    try:
        written = adapter.dump_json(adapter.validate_python(value))
    except (ValidationError, ValueError, RecursionError) as failure:
        raise PartsRejected(f"The part {name} is not of its type: {_told(failure)}.") from None
    if name in _READ and len(written) > MOST_READ_BYTES:
        raise PartsRejected(f"The part {name} has {len(written)} bytes; at most {MOST_READ_BYTES} are allowed.")
    return written


def _told(failure: Exception) -> str:
    if not isinstance(failure, ValidationError):
        return str(failure)[:200]
    error = failure.errors(include_url=False, include_input=False, include_context=False)[0]
    return f"{error['msg']} at {'.'.join(map(str, error['loc'])) or 'its top'}"[:300]
