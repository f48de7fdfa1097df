"""The wide suite: some hundreds of programs of many kinds, so that what is fast is fast for a class and not for a case.

Each file holds the programs of one kind. What is compiled is checked against float64 as patterns are; the programs of a
process are all compiled first, beside other processes, and then timed while no other process does anything.
"""

from __future__ import annotations

from bench.patterns import Case
from bench.wide import (
    activation_gradients,
    activations,
    adapted_weights,
    attention,
    attention_gradients,
    audio,
    bits,
    complexes,
    contrastive,
    detection_losses,
    embedding_gradients,
    generative,
    geometry,
    graphs,
    losses,
    norm_gradients,
    norms,
    optimisers,
    parts,
    physics,
    positions,
    quantisation,
    recurrences,
    regression_losses,
    regularisers,
    reinforcement,
    routing,
    samples,
    sequence_losses,
    sequences,
    statistics,
    tables,
    views,
    vision,
)
from bench.wide.declare import PROGRAMS

#: The files whose programs make up the suite.
KINDS = (
    activation_gradients,
    activations,
    adapted_weights,
    attention,
    attention_gradients,
    audio,
    bits,
    complexes,
    contrastive,
    detection_losses,
    embedding_gradients,
    generative,
    geometry,
    graphs,
    losses,
    norm_gradients,
    norms,
    optimisers,
    parts,
    physics,
    positions,
    quantisation,
    recurrences,
    regression_losses,
    regularisers,
    reinforcement,
    routing,
    samples,
    sequence_losses,
    sequences,
    statistics,
    tables,
    views,
    vision,
)

WIDE: dict[str, Case] = PROGRAMS
