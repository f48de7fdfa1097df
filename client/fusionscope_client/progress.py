"""How far an exploration is: a line that changes, in a notebook or on a terminal."""

from __future__ import annotations

import contextlib
import sys
from dataclasses import dataclass, field
from typing import Any, Callable, Optional, Union

from fusionscope_client.events import Event

Tell = Callable[[Event], None]


@dataclass
class _Line:
    """What is said of the events so far."""

    place: Optional[int] = None
    is_started: bool = False
    stages: list[str] = field(default_factory=list)

    def take(self, event: Event) -> None:
        if event.name == "queued":
            self.place = event.data.get("position")
        elif event.name == "started":
            self.is_started, self.stages = True, []
        elif event.name == "stage":
            stage = event.data.get("stage")
            if isinstance(stage, dict):
                self.stages.append(_stage_words(stage))

    def __str__(self) -> str:
        if self.stages:
            return "Fusionscope: " + " · ".join(self.stages)
        if self.is_started:
            return "Fusionscope: running"
        return "Fusionscope: queued" + (f", {self.place} before this one" if self.place else "")


def _stage_words(stage: dict[str, Any]) -> str:
    name, ms, status = stage.get("name", "?"), stage.get("ms"), stage.get("status")
    took = f" {ms / 1000:.2f} s" if isinstance(ms, (int, float)) else ""
    return f"{name}{took}" if status == "done" else f"{name} {status}"


class Watching:
    """Is told every event. Within `with`, it may write; afterwards its line is gone."""

    def __init__(self, tell: Tell, end: Callable[[], None]) -> None:
        self.tell, self._end = tell, end

    def __enter__(self) -> Watching:
        return self

    def __exit__(self, *_: object) -> None:
        self._end()


def watching(progress: Union[bool, Tell, None]) -> Watching:
    """`True` shows a line, `False` nothing, `None` a line where somebody looks; a function is told each event."""
    if callable(progress):
        return Watching(progress, _nothing)
    notebook = _display_of_notebook() if progress is not False else None
    if notebook is not None:
        return _writing(notebook.update, notebook.clear)
    if progress or (progress is None and sys.stderr.isatty()):
        return _writing(_on_terminal, lambda: _on_terminal(""))
    return Watching(lambda event: None, _nothing)


def _writing(show: Callable[[str], None], end: Callable[[], None]) -> Watching:
    line = _Line()

    def tell(event: Event) -> None:
        line.take(event)
        show(str(line))

    return Watching(tell, end)


def _nothing() -> None:
    pass


def _on_terminal(text: str) -> None:
    sys.stderr.write(f"\r\x1b[2K{text[:200]}")
    sys.stderr.flush()


class _NotebookLine:
    def __init__(self) -> None:
        from IPython.display import display

        self._handle = display(_Text("Fusionscope: sending"), display_id=True)

    def update(self, text: str) -> None:
        self._handle.update(_Text(text))

    def clear(self) -> None:
        self._handle.update(_Text(""))


class _Text:
    """Shown as it is, without quotation marks."""

    def __init__(self, text: str) -> None:
        self._text = text

    def __repr__(self) -> str:
        return self._text


def _display_of_notebook() -> Optional[_NotebookLine]:
    """Where the code runs in a kernel of a notebook, and not in a terminal."""
    if "IPython" not in sys.modules:
        return None
    with contextlib.suppress(ImportError, AttributeError):
        from IPython import get_ipython

        shell = get_ipython()
        if shell is not None and hasattr(shell, "kernel"):
            return _NotebookLine()
    return None
