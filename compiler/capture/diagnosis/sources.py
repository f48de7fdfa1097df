"""Dynamo's names of inputs and their parts, in terms of the snippet.

L['n']                                               ->  n
L['x'].size()[0]                                     ->  x.size(0)
L['self']._modules['fc']._parameters['weight']       ->  self.fc.weight
G['model']._modules['0'].training                    ->  model[0].training
L['___stack1']                                       ->  a value kept over a graph break
"""

from __future__ import annotations

import re

_SCOPE = re.compile(r"\b[LG]\['([^']+)'\]")
_MODULE_PART = re.compile(r"\._(?:modules|parameters|buffers)\['([^']+)'\]")
_TENSOR_PART = re.compile(r"\.(size|stride)\(\)\[(\d+)\]")
_ON_STACK = re.compile(r"\b___stack\d+\b")


def words_of(code: str) -> str:
    """`code`, an expression of Dynamo's guards, with every input as the snippet writes it."""
    text = _SCOPE.sub(r"\1", code)
    text = _MODULE_PART.sub(_member, text)
    text = _TENSOR_PART.sub(r".\1(\2)", text)
    return _ON_STACK.sub("a value kept over a graph break", text)


def _member(found: re.Match[str]) -> str:
    return f"[{found[1]}]" if found[1].isdigit() else f".{found[1]}"
