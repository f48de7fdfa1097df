"""Server-sent events, as the HTML standard (section 9.2, "Server-sent events") writes them: lines in, events out."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import Any, Optional


@dataclass(frozen=True)
class Event:
    """`queued`, `started`, `stage`, `log` or `done`, with the fields that the service's documentation gives."""

    name: str
    data: dict[str, Any]
    id: str = ""


@dataclass
class EventReader:
    """Fed one line after another, without their ends. `last_id` is what a reader that comes back goes on after."""

    last_id: str = ""
    _name: str = ""
    _data: list[str] = field(default_factory=list)

    def feed(self, line: str) -> Optional[Event]:
        """The event that ends with this line, if one does."""
        if not line:
            return self._ended()
        name, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if name == "event":
            self._name = value
        elif name == "data":
            self._data.append(value)
        elif name == "id":
            self.last_id = value
        return None

    def _ended(self) -> Optional[Event]:
        name, data = self._name, "\n".join(self._data)
        self._name, self._data = "", []
        if not data:
            return None
        try:
            parsed = json.loads(data)
        except ValueError:
            return None
        return Event(name or "message", parsed if isinstance(parsed, dict) else {"value": parsed}, self.last_id)
