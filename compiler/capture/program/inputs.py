"""Inputs for a function that the snippet does not call: from the request, the snippet's names, annotations, or a
default."""

from __future__ import annotations

import inspect
import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import torch

from compiler.annotations import annotated_inputs
from compiler.capture.captured import copy_values
from compiler.capture.program.output import silenced
from compiler.capture.program.snippet import Snippet
from compiler.options import InputSpec, Options
from compiler.report import Note
from compiler.wording import listed

#: Tried in order where nothing says what the tensors are like.
DEFAULT_SHAPES: tuple[tuple[int, ...], ...] = ((1024, 1024), (1024,), (16, 64, 64), (8, 3, 64, 64), (4, 8, 128, 64))

#: Values of parameters that are no tensors, by annotation or by name.
_BY_ANNOTATION: dict[str, Any] = {"int": 4, "float": 0.5, "bool": True}
_BY_NAME: dict[str, Any] = {"dim": -1, "axis": -1, "eps": 1e-5, "epsilon": 1e-5, "keepdim": True, "training": False}


class NoInputsFitError(Exception):
    """No default is what the function takes; its cause is what the function raised on the first one."""


@dataclass
class ChosenInputs:
    """Arguments of one call, and what the reader must know about how they were chosen."""

    arguments: list[Any]
    notes: list[Note] = field(default_factory=list)


def choose_inputs(
    function: Callable[..., Any], snippet: Snippet, options: Options, device: torch.device
) -> ChosenInputs:
    """Inputs of `function`, a function or a module. Raises NoInputsFitError where no default is what it takes."""
    if options.inputs is not None:
        return ChosenInputs([make_tensor(spec, device) for spec in options.inputs])
    parameters = required_parameters(function)
    known = _known_values(function, parameters, snippet, device)
    scalars = {p.name: value for p in parameters if p.name not in known and (value := _scalar(p)) is not None}
    notes = [
        Note(message=f"{name} was not given: {value!r} was used, by its annotation or its name.")
        for name, value in scalars.items()
    ]
    known |= scalars
    missing = [parameter.name for parameter in parameters if parameter.name not in known]
    if not missing:
        return ChosenInputs([known[parameter.name] for parameter in parameters], notes)
    chosen = _by_trying(function, parameters, known, missing, device)
    return ChosenInputs(chosen.arguments, chosen.notes + notes)


def required_parameters(function: Callable[..., Any]) -> list[inspect.Parameter]:
    """Positional parameters without a default value."""
    target = function.forward if isinstance(function, torch.nn.Module) else function
    return [
        parameter
        for parameter in inspect.signature(target).parameters.values()
        if parameter.kind in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD)
        and parameter.default is parameter.empty
    ]


def make_tensor(spec: InputSpec, device: torch.device) -> torch.Tensor:
    """A tensor as described: standard normal, or uniform integers, or fair coins."""
    dtype = getattr(torch, spec.dtype)
    if dtype == torch.bool:
        return torch.rand(spec.shape, device=device) < 0.5
    if dtype.is_floating_point or dtype.is_complex:
        return torch.randn(spec.shape, device=device).to(dtype)
    return torch.randint(spec.low, spec.high, spec.shape, device=device, dtype=dtype)


def _known_values(
    function: Callable[..., Any], parameters: list[inspect.Parameter], snippet: Snippet, device: torch.device
) -> dict[str, Any]:
    """Values that the snippet states: by annotation, or as globals with the names of the parameters."""
    if isinstance(function, torch.nn.Module):
        annotated = annotated_inputs(snippet.tree, "forward", type(function).__name__)
    else:
        annotated = annotated_inputs(snippet.tree, getattr(function, "__name__", ""))
    known: dict[str, Any] = {}
    for parameter in parameters:
        value = snippet.names.get(parameter.name)
        if parameter.name in annotated:
            known[parameter.name] = make_tensor(annotated[parameter.name], device)
        elif isinstance(value, torch.Tensor | int | float | list | tuple):
            known[parameter.name] = value
    return known


def _scalar(parameter: inspect.Parameter) -> Any:
    """A value for a parameter that takes no tensor, by what it is annotated or named; None if it may take one."""
    annotation = parameter.annotation
    name = annotation if isinstance(annotation, str) else getattr(annotation, "__name__", "")
    return _BY_ANNOTATION.get(name, _BY_NAME.get(parameter.name))


def _by_trying(
    function: Callable[..., Any],
    parameters: list[inspect.Parameter],
    known: dict[str, Any],
    missing: list[str],
    device: torch.device,
) -> ChosenInputs:
    """The first default that the function, called without compilation, does not refuse."""
    first_error: Exception | None = None
    for spec in _default_specs(function):
        values = {**known, **{name: make_tensor(spec, device) for name in missing}}
        arguments = [values[parameter.name] for parameter in parameters]
        try:
            with torch.no_grad(), silenced():  # what the snippet prints is what its explored call prints
                function(*copy_values(arguments))
        except Exception as error:
            first_error = first_error or error
        else:
            return ChosenInputs(arguments, [_default_note(missing, spec)])
    raise NoInputsFitError(f"No default fits {', '.join(missing)}.") from first_error


def _default_specs(function: Callable[..., Any]) -> Iterator[InputSpec]:
    """What to try: for a module, first what its first layer takes."""
    if isinstance(function, torch.nn.Module):
        specs = map(_input_of_layer, function.modules())
        yield from itertools.islice((spec for spec in specs if spec is not None), 1)
    yield from (InputSpec(shape=shape) for shape in DEFAULT_SHAPES)


def _input_of_layer(layer: torch.nn.Module) -> InputSpec | None:
    dtype = str(next((parameter.dtype for parameter in layer.parameters()), torch.float32)).removeprefix("torch.")
    match layer:
        case torch.nn.Linear():
            return InputSpec(shape=(128, layer.in_features), dtype=dtype)
        case torch.nn.Conv2d():
            return InputSpec(shape=(8, layer.in_channels, 64, 64), dtype=dtype)
        case torch.nn.Conv1d():
            return InputSpec(shape=(8, layer.in_channels, 256), dtype=dtype)
        case torch.nn.Embedding():
            return InputSpec(shape=(8, 128), dtype="int64", high=layer.num_embeddings)
        case torch.nn.LayerNorm():
            return InputSpec(shape=(128, *layer.normalized_shape), dtype=dtype)
    return None


def _default_note(missing: list[str], spec: InputSpec) -> Note:
    size = " x ".join(str(number) for number in spec.shape)
    names = listed(missing)
    one = len(missing) == 1
    drawn = "drawn from a standard normal" if "float" in spec.dtype else f"of integers below {spec.high}"
    tensors = f"a {spec.dtype} tensor of {size}" if one else f"{spec.dtype} tensors of {size}"
    return Note(
        message=f"{names} {'was' if one else 'were'} not given: {tensors} {drawn} {'was' if one else 'were'} used, "
        f"because neither the request nor an annotation such as `{missing[0]}: f32[4096, 4096]` says what "
        f"{'it is' if one else 'they are'}."
    )
