"""The interface of fusion rules: the context of a verdict, a fusion with its score, the merged group."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple, Protocol

from compiler.decisions import Refuse
from compiler.devices import Device
from compiler.ir.lazy import lazy
from compiler.ir.nodes import ExternNode
from compiler.options import LARGEST_GROUP
from compiler.schedule.cost.kernel import Cost, group_cost
from compiler.schedule.directives import NO_DIRECTIVES, Directives
from compiler.schedule.form import form_of
from compiler.schedule.group import Group, Member
from compiler.schedule.products.loops import Product
from compiler.schedule.program.single_pass import relative_members
from compiler.schedule.tiles.cooperative import may_cooperate
from compiler.schedule.units import Unit, UnitGraph

#: Two predictions that differ by less than the model errs in the median are even.
EVEN = 0.05
#: Microseconds of a product on the device at hand, None where it could not be run.
Measure = Callable[[Product | ExternNode], float | None]

#: Steps in which the order of fusions tells benefits apart: 15 % each, which is what nine in ten predictions keep to.
RANKS_PER_OCTAVE = 5

#: Kinds of fusion that come after the others, whatever they bring. Units that only read the same data are brought
#: together when each has what it makes or needs itself; and what is gathered across rows is of no use to anything else
#: in its kernel, so that comes when nothing else is left, first where the rows lie along memory: those have room for
#: more sums. A kernel that writes along one loop and along another (`Score.is_transposed`) comes one rank later than
#: its kind, when the reductions of what it reads have joined what they can.
LATER = {"horizontal": 1, "across": 2}


@dataclass(frozen=True)
class Limits:
    """Limits on the size of a group: what one kernel can hold."""

    most_nodes: int = LARGEST_GROUP
    #: Of all parts of a kernel that is a batch. Nothing by default: parts have registers and loops of their own.
    most_nodes_of_parts: int | None = None
    most_buffers: int = 24
    #: Of a pointwise kernel one part of which makes what the other reads. A long loop that was written out step by step
    #: has many values that are read further down, and most of them never reach memory once all of it is one kernel.
    most_buffers_of_chain: int = 72
    #: Parts of a kernel that is a batch, and buffers of all of them: each is a parameter.
    most_parts: int = 16
    most_part_buffers: int = 96


class Form(NamedTuple):
    """A group without its names, as a number, and the names in the order in which they occur."""

    number: int
    names: tuple[str, ...]


@dataclass(frozen=True)
class Context:
    """Everything that a verdict depends on besides the two units."""

    graph: UnitGraph
    device: Device
    limits: Limits = Limits()
    disabled: frozenset[str] = frozenset()
    directives: Directives = NO_DIRECTIVES
    #: Of groups, their form and the names that it leaves out.
    forms: dict[Group, Form] = field(default_factory=dict)
    #: Forms by what they are.
    numbered_forms: dict[Hashable, int] = field(default_factory=dict)
    #: Costs by form: kernels that differ in names alone cost the same.
    costs: dict[int, Cost] = field(default_factory=dict)
    #: Of the groups of a form, the positions of the members whose sums need not wait, and of those that they go by.
    relative: dict[int, dict[int, int]] = field(default_factory=dict)
    #: Verdicts on pairs of groups, by what the pairs are but for names; see `alike.py`.
    verdicts: dict[Hashable, Verdict] = field(default_factory=dict)
    #: Buffers that are not worth computing again in their readers, with the maker and the readers at that time.
    kept_stored: dict[str, list[Unit]] = field(default_factory=dict)
    #: Library calls as products of our own, by name; None for those that are none.
    products: dict[str, Product | None] = field(default_factory=dict)
    #: What a product takes, where that is to be measured (see `compiler.runtime.triton.tuning`).
    measure: Measure | None = None

    def cost(self, group: Group) -> Cost:
        """The expected cost of `group` as one kernel, or its measured one; worked out once for each form."""
        form = self.form(group).number
        found = self.costs.get(form)
        if found is None:
            expected = group_cost(group, self.graph.layouts, self.device)
            found = self.costs[form] = self.measured(group, expected) if isinstance(group, Product) else expected
        return found

    def measured(self, product: Product | ExternNode, expected: Cost) -> Cost:
        """The cost of a product with the time that was measured, or the expected one."""
        found = self.measure(product) if self.measure is not None else None
        return expected if found is None else replace(expected, microseconds=found)

    def form(self, group: Group) -> Form:
        """The form of a group, worked out once."""
        found = self.forms.get(group)
        if found is None:
            form, names = form_of(group, self.graph.layouts)
            found = self.forms[group] = Form(self.numbered_forms.setdefault(form, len(self.numbered_forms)), names)
        return found

    def relative_members(self, group: Group) -> dict[str, str]:
        """See `single_pass.relative_members`; worked out once for each form. A CPU's kernel has the row in its cache
        and goes through it again, which takes as long or less."""
        if self.device.kind == "cpu":
            return {}
        form, names = self.form(group).number, [member.name for member in group.members]
        if form not in self.relative:
            found = relative_members(group)
            self.relative[form] = {names.index(reader): names.index(writer) for reader, writer in found.items()}
        return {names[reader]: names[writer] for reader, writer in self.relative[form].items()}

    def score(
        self, category: str, a: int, b: int, apart: Sequence[Cost], fused: Cost, unfused_us: float, **more: Any
    ) -> tuple[Score, dict[str, Any]]:
        """The score of a fusion of the units `a` and `b`, and the figures that a verdict on it tells. `apart` are the
        costs of what it takes the place of, `unfused_us` what that takes one after another."""
        before = sum(cost.bytes for cost in apart)
        distance = self.graph.distance(a, b)
        found = Score(category, before - fused.bytes, distance, fused.microseconds, unfused_us, **more)
        figures = {"bytes_apart": before, "bytes_fused": fused.bytes}
        return found, {**figures, "fused_us": fused.microseconds, "unfused_us": unfused_us}

    def with_best_strategy(self, group: Group) -> Group:
        """The group by its fastest reduction strategy."""
        plain = group
        if group.single_pass or group.is_cooperative:
            plain = replace(group, single_pass=frozenset(), is_cooperative=False)
        if self.cost(plain).passes < 2:
            return plain
        return min(self.reduction_strategies(plain), key=lambda strategy: self.cost(strategy).microseconds)

    def reduction_strategies(self, plain: Group) -> list[Group]:
        """The strategies of a group, the plainest first, which it is given. Cooperative ones are for what one pass
        cannot do."""
        found = [plain]
        if "single_pass" not in self.disabled:
            members = frozenset(self.relative_members(plain))
            found += [replace(one, single_pass=members) for one in found if members]
        if "team" not in self.disabled and min(self.cost(one).passes for one in found) > 1:
            found += [shared for one in found if may_cooperate(shared := replace(one, is_cooperative=True))]
        return found


@dataclass(frozen=True)
class Score:
    """What a fusion is expected to bring. Times are predictions in microseconds."""

    category: str
    bytes_saved: int
    distance: int
    fused_us: float
    unfused_us: float
    #: Whether a kernel that reduces goes through memory in the order in which it lies: other reductions join it better.
    goes_along_memory: bool = True
    #: Whether a kernel without a reduction writes along one loop and along another: no reduction can join it then.
    is_transposed: bool = False
    #: Whether the reader asked for it: then it comes before all others, whatever it brings.
    is_forced: bool = False
    #: Nodes of the fused group.
    nodes: int = 0

    @property
    def benefit_us(self) -> float:
        return self.unfused_us - self.fused_us

    @property
    def rank(self) -> tuple[bool, int, int, int, int, bool, int]:
        """Larger is fused first. Benefits that differ by no more than the model errs count as even; of these, small
        groups come first, as what a large one takes in has lost its other partners."""
        octave = math.log2(max(self.benefit_us, 1e-3))
        benefit, lateness = round(RANKS_PER_OCTAVE * octave), LATER.get(self.category, 0)
        if self.is_transposed or (self.category == "across" and not self.goes_along_memory):
            lateness += 1
        return self.is_forced, -lateness, benefit, -self.nodes, self.bytes_saved, self.goes_along_memory, -self.distance


@dataclass(frozen=True)
class Fuse:
    """A fusion that is legal and pays. What the two units become is made when it is first asked for, while both are
    still there: most of what is allowed is never taken. `stored` are the buffers that it stores."""

    reason: str
    score: Score
    numbers: dict[str, Any]
    stored: frozenset[str]
    make: Callable[[], Group]

    @lazy
    def group(self) -> Group:
        return self.make()

    @staticmethod
    def into(reason: str, group: Group, score: Score, numbers: dict[str, Any]) -> Fuse:
        """A fusion into a group that is made already."""
        return Fuse(reason, score, numbers, group.stored, lambda: group)


@dataclass(frozen=True)
class Verdict:
    """A verdict on a pair of groups, as it is kept for others that differ in names alone: their `names`, in the order
    in which they come up, and the rule by which they fuse, if they do."""

    answer: Fuse | Refuse
    names: tuple[str, ...]
    rule: Rule | None


def unless_forbidden(verdict: Fuse | Refuse, one: Unit, two: Unit, context: Context) -> Fuse | Refuse:
    """The verdict, or the refusal of a fusion that would put two nodes together that are to stay apart.

    It comes after the rules: a pair that they refuse anyway keeps their reason."""
    pair = context.directives.forbidden_between(one, two) if isinstance(verdict, Fuse) else None
    if pair is None or not isinstance(verdict, Fuse):
        return verdict
    return Refuse("policy.forbidden", verdict.numbers | {"forbidden_a": pair[0], "forbidden_b": pair[1]})


class Rule(Protocol):
    """One kind of fusion of two groups that touch the buffers `shared`; `fused.KIND` is the reason of those that it
    makes."""

    kind: str

    def applies(self, a: Group, b: Group, shared: Sequence[str]) -> bool:
        """Whether the two are of the kind that the rule is about. Those that apply are asked in turn, until one makes
        a group."""
        ...

    def fuse(self, a: Group, b: Group, shared: list[str], context: Context) -> Group | Refuse:
        """The group of both, or why it is not legal; whether it pays is not asked here."""
        ...


def third_between(a: int, b: int, graph: UnitGraph) -> Refuse | None:
    """Whether a third unit must run between the two. A refusal names its last node: the unit may become another kernel,
    and the name that it has until then is perhaps that of one elsewhere."""
    # An earlier fusion may have ordered two units that were free of each other, either way around.
    between = graph.between(a, b) if graph.must_precede(a, b) else graph.between(b, a)
    if between is None:
        return None
    return Refuse("dependency.intermediate", {"between": graph.units[between].nodes[-1].name})


def join(name: str, members: Sequence[Member], host: Group, context: Context, inside: set[int]) -> Group:
    produced = [member.name for member in members]
    return Group(name, host.space, tuple(members), context.graph.escaping(produced, inside))
