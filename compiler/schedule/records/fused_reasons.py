"""Why nodes were put into one kernel, or into one launch: the part of the closed list that is about fusions made."""

from __future__ import annotations

from compiler.schedule.records.reason import Reason, listed

FUSIONS: dict[str, Reason] = listed(
    Reason(
        "fused.vertical",
        "fused",
        "One node reads what the other writes, at the same point of the same loops, so the value stays in a register.",
        "{b} reads {shared} at the point where {a} makes it: the value stays in a register",
    ),
    Reason(
        "fused.inline",
        "fused",
        "The producer is cheap and nothing else reads it, so it is computed again wherever the consumer needs it.",
        "{a} is computed inside {b} at each point that reads it; {shared} never reaches memory",
    ),
    Reason(
        "fused.horizontal",
        "fused",
        "Both nodes run over the same loops and read the same data, so one kernel reads it once for both.",
        "{a} and {b} read {shared} in the same loops: it is read once for both",
    ),
    Reason(
        "fused.recompute",
        "fused",
        "The value is cheap to compute again from what is in memory anyway, so it is not written for its readers; an "
        "output of the graph is, but not read.",
        "{b} computes {shared} again instead of reading it",
    ),
    Reason(
        "fused.single_pass",
        "fused",
        "A sum that is relative to another result of the row is made in the same pass: relative to what is known so "
        "far, and put right when the other result is complete.",
        "{reader} is added up in the pass that makes {writer}, so that one pass over the row serves both",
    ),
    Reason(
        "fused.team",
        "fused",
        "A cooperative reduction: a team of programs holds a row that is too long for the registers of one. They "
        "exchange what they reduce and go on with what they hold, so that each element is read once.",
        "a team of programs holds each row of {row} elements, so that {shared} is read once for {writer} and {reader}",
    ),
    Reason(
        "fused.one_node",
        "fused",
        "Both names stand for the same loop: one operator, or a view that its reader looks through.",
        "both are the loop {a}",
    ),
    Reason(
        "fused.across",
        "fused",
        "One node reduces along the loops that the other keeps apart. Each program adds up its own rows, and the last "
        "one to finish joins the results, so that both come from one pass over the data.",
        "{b} is gathered across the rows of {a} while they are in registers: {shared} is read once for both",
    ),
    Reason(
        "fused.epilogue",
        "fused",
        "The node needs one element of a matrix product at a time, so it is computed on the sums of a tile before they "
        "are stored. A kernel of our own takes the place of the library's.",
        "{b} is computed on the tiles of {call} before they are stored, in a kernel of our own: predicted "
        "{fused_us:.1f} us instead of {unfused_us:.1f} us",
    ),
    Reason(
        "fused.library_epilogue",
        "fused",
        "The library's kernel for the matrix product adds the bias and applies this activation itself, before it "
        "stores.",
        "the library computes {b} at the end of {call}, in one call: predicted {fused_us:.1f} us instead of "
        "{unfused_us:.1f} us",
    ),
    Reason(
        "fused.prologue",
        "fused",
        "The node makes an operand of a matrix product and is cheap, so it is computed on each tile of the operand as "
        "it is loaded. A kernel of our own takes the place of the library's.",
        "{a} is computed on the tiles that {call} loads, in a kernel of our own: predicted {fused_us:.1f} us instead "
        "of {unfused_us:.1f} us",
    ),
    Reason(
        "fused.shared_operand",
        "fused",
        "Matrix products of one left operand, of equal sizes: a kernel of our own walks along k once, loads each tile "
        "of that operand once, and has a sum for each product.",
        "{call} are {products} products of {shared} in one kernel of our own: predicted {fused_us:.1f} us instead of "
        "{unfused_us:.1f} us",
    ),
    Reason(
        "fused.own_product",
        "fused",
        "The result of this matrix product has few tiles, so that programs share the sums of each: a kernel of our own "
        "keeps memory busier than the library's.",
        "{call} is a kernel of our own, in which {splits} programs share the sums of a tile: predicted "
        "{fused_us:.1f} us instead of {unfused_us:.1f} us",
    ),
    Reason(
        "fused.batch",
        "fused",
        "Neither node needs the other, and each takes little longer than its launch: they run side by side in one "
        "launch, each with some of the programs.",
        "{a} and {b} run side by side in one launch",
    ),
)
