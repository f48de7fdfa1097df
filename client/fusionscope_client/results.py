"""A report as one looks at it: every field of the contract, and above them what one asks next."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Generic, Optional, TypeVar

from fusionscope_client import contract, display, picture, questions
from fusionscope_client.contract import Answer, Comparison

if TYPE_CHECKING:
    from fusionscope_client.client import AsyncFusionscope, Fusionscope

Row = TypeVar("Row")


class Rows(list[Row], Generic[Row]):
    """A list that is shown as a table."""

    def records(self) -> list[dict[str, Any]]:
        """One dict a row, of plain values."""
        return [display.record(row) for row in self]

    def to_pandas(self) -> Any:
        """A `pandas.DataFrame`, one row each. Raises ImportError where pandas is not installed."""
        try:
            import pandas
        except ImportError as missing:
            message = "to_pandas needs pandas: pip install pandas. records() gives the same rows without it."
            raise ImportError(message) from missing

        return pandas.DataFrame.from_records(self.records())

    def __repr__(self) -> str:
        return display.table_text(self.records())

    def _repr_html_(self) -> str:
        return display.table_html(self.records())


@dataclass(frozen=True)
class Kernel(contract.Kernel):
    """A kernel of the contract, with the graph that it is of and its place there, counted from 0."""

    graph: str = ""
    place: int = 0

    @property
    def triton(self) -> Optional[str]:
        """Its text in Triton; None where it has none, as a library call."""
        return self._text("triton")

    @property
    def cpp(self) -> Optional[str]:
        """Its text in C++; None where it has none."""
        return self._text("cpp")

    @property
    def ptx(self) -> Optional[str]:
        """Its PTX for the target of the exploration; None where it was not compiled for one."""
        return self._text("ptx")

    def _text(self, language: str) -> Optional[str]:
        if self.kind == language:
            return self.source
        return next((other.source for other in self.also if other.language == language), None)

    def _repr_html_(self) -> str:
        return display.kernel_html(self)


@dataclass(frozen=True)
class Decision(contract.Decision):
    """A decision of the contract, with the graph that it is of."""

    graph: str = ""


@dataclass(frozen=True)
class Refusal(Decision):
    """What decided that two kernels stay apart: `bytes` were at stake, and as many `pairs` of their nodes were refused
    as they were fused with others."""

    kernels: tuple[str, str] = ("", "")
    pairs: int = 1
    bytes: int = 0


class _Report:
    """What both clients give: `contents` holds every field, and each is an attribute of this too."""

    def __init__(self, contents: contract.Report, address: str) -> None:
        self.contents = contents
        self._address = address

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "contents":
            raise AttributeError(name)
        return getattr(self.contents, name)

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(one.name for one in fields(self.contents))})

    @property
    def verdict(self) -> str:
        """The answer in a sentence or two."""
        return self.contents.summary.verdict

    @property
    def url(self) -> str:
        """The page on this exploration."""
        return f"{self._address}/x/{self.contents.id}"

    @property
    def kernels(self) -> Rows[Kernel]:
        """Those of all graphs, in the order of their launches."""
        return Rows(
            _extended(Kernel, kernel, graph=graph.name, place=place)
            for graph in self.contents.graphs
            for place, kernel in enumerate(graph.kernels)
        )

    @property
    def decisions(self) -> Rows[Decision]:
        """Those of all graphs, in the order in which they were made."""
        return Rows(
            _extended(Decision, decision, graph=graph.name)
            for graph in self.contents.graphs
            for decision in graph.decisions
        )

    @property
    def refusals(self) -> Rows[Refusal]:
        """Each two kernels that were not fused, those with most bytes at stake first."""
        told = (
            _extended(
                Refusal, graph.decisions[one.decisions[0]], graph=graph.name, bytes=one.bytes,
                kernels=tuple(f"K{place + 1}" for place in one.kernels), pairs=len(one.decisions),
            )
            for graph in self.contents.graphs
            for one in graph.refusals
        )  # fmt: skip
        return Rows(sorted(told, key=lambda refusal: -refusal.bytes))

    @property
    def map(self) -> picture.Picture:
        """Kernels, what goes through memory between them, and the costliest refusals, as SVG."""
        return picture.Picture(self.contents)

    def __repr__(self) -> str:
        return display.report_text(self)

    def _repr_html_(self) -> str:
        return display.report_html(self)

    def _asked_again(self, options: dict[str, Any]) -> dict[str, Any]:
        """The options of the same exploration once more, with others in their places."""
        return {**self.contents.options, **options, "based_on": self.contents.id}

    def _with_pair(self, name: str, a: str, b: str) -> dict[str, Any]:
        return {name: [*self.contents.options.get(name, ()), (a, b)]}

    def _reproducer(self, kernel: str, graph: Optional[str]) -> questions.Question[str]:
        path = f"{questions.PREFIX}/{self.contents.id}/kernels/{kernel}.py"
        return questions.text(path, **({"graph": graph} if graph else {}))

    def _other(self, other: Any) -> str:
        return other if isinstance(other, str) else str(other.contents.id)


class Report(_Report):
    """A report, and a client that waits."""

    def __init__(self, contents: contract.Report, client: Fusionscope) -> None:
        super().__init__(contents, client.address)
        self._client = client

    def why(self, a: str, b: str) -> Rows[Answer]:
        """Why two nodes are, or are not, in one kernel. Each is named as a loop, a node of either FX graph, or a
        kernel."""
        return Rows(self._client._asked(questions.why(self.contents.id, a, b)))

    def again(self, **options: Any) -> Report:
        """The same program with other options."""
        return self._client.explore(self.contents.source, **self._asked_again(options))

    def force(self, a: str, b: str) -> Report:
        """The same program with these two nodes fused where that is legal, paying or not; see its `what_if`."""
        return self.again(**self._with_pair("force", a, b))

    def forbid(self, a: str, b: str) -> Report:
        """The same program with these two nodes in different kernels; see its `what_if`."""
        return self.again(**self._with_pair("forbid", a, b))

    def compare(self, other: Any) -> Comparison:
        """This exploration, and then `other` (a report or an id), side by side."""
        return self._client.compare(self.contents.id, self._other(other))

    def markdown(self) -> str:
        return self._client._asked(questions.text(f"{questions.PREFIX}/{self.contents.id}.md"))

    def html(self) -> str:
        """One file that stands alone, to be kept or sent."""
        return self._client._asked(questions.text(f"{questions.PREFIX}/{self.contents.id}.html"))

    def reproducer(self, kernel: str, graph: Optional[str] = None) -> str:
        """A file that runs, checks and times one kernel alone."""
        return self._client._asked(self._reproducer(kernel, graph))


class AsyncReport(_Report):
    """A report, and a client that is awaited."""

    def __init__(self, contents: contract.Report, client: AsyncFusionscope) -> None:
        super().__init__(contents, client.address)
        self._client = client

    async def why(self, a: str, b: str) -> Rows[Answer]:
        """As `Report.why`."""
        return Rows(await self._client._asked(questions.why(self.contents.id, a, b)))

    async def again(self, **options: Any) -> AsyncReport:
        """As `Report.again`."""
        return await self._client.explore(self.contents.source, **self._asked_again(options))

    async def force(self, a: str, b: str) -> AsyncReport:
        """As `Report.force`."""
        return await self.again(**self._with_pair("force", a, b))

    async def forbid(self, a: str, b: str) -> AsyncReport:
        """As `Report.forbid`."""
        return await self.again(**self._with_pair("forbid", a, b))

    async def compare(self, other: Any) -> Comparison:
        """As `Report.compare`."""
        return await self._client.compare(self.contents.id, self._other(other))

    async def markdown(self) -> str:
        return await self._client._asked(questions.text(f"{questions.PREFIX}/{self.contents.id}.md"))

    async def html(self) -> str:
        """As `Report.html`."""
        return await self._client._asked(questions.text(f"{questions.PREFIX}/{self.contents.id}.html"))

    async def reproducer(self, kernel: str, graph: Optional[str] = None) -> str:
        """As `Report.reproducer`."""
        return await self._client._asked(self._reproducer(kernel, graph))


def _extended(of: type[Row], value: Any, **more: Any) -> Row:
    return of(**{one.name: getattr(value, one.name) for one in fields(value)}, **more)
