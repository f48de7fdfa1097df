"""JSON to the dataclasses of `contract`.

A service of another version may send more, less, or something else: what is unknown is left out, what is missing has
its default, and what is of another form stays as it came.
"""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from functools import cache
from typing import Any, Callable, TypeVar, Union, get_args, get_origin, get_type_hints

Made = TypeVar("Made")
Decoder = Callable[[Any], Any]


def decoded(of: type[Made], value: Any) -> Made:
    """`value`, as parsed from JSON, as an instance of the dataclass `of`."""
    hint: Any = of
    made = _decoder(hint)(value)
    if not isinstance(made, of):
        raise TypeError(f"expected a JSON object for {of.__name__}, not {type(value).__name__}")
    return made


@cache
def _decoder(hint: Any) -> Decoder:
    origin, arguments = get_origin(hint), get_args(hint)
    if is_dataclass(hint):
        return _of_dataclass(hint)
    if origin is list:
        item = _decoder(arguments[0])
        return lambda value: [item(one) for one in value] if isinstance(value, list) else value
    if origin is tuple:
        items = [_decoder(argument) for argument in arguments]
        return lambda value: tuple(item(one) for item, one in zip(items, value)) if isinstance(value, list) else value
    if origin is Union:
        inner = next((_decoder(argument) for argument in arguments if _is_structured(argument)), None)
        if inner is not None:
            return lambda value: None if value is None else inner(value)
    return lambda value: value


def _is_structured(hint: Any) -> bool:
    return is_dataclass(hint) or get_origin(hint) in (list, tuple)


def _of_dataclass(of: Any) -> Decoder:
    known: dict[str, Decoder] = {}

    def decode(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        if not known:  # only now: a model may hold itself
            hints = get_type_hints(of)
            known.update((field.name, _decoder(hints[field.name])) for field in fields(of))
        return of(**{name: known[name](one) for name, one in value.items() if name in known})

    return decode
