"""What is no Python in a program of a notebook or a session: commands of a shell, as `!pip`, and of IPython, as
`%timeit f(x)`; prompts, as `>>> `, and what was printed between them.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, field

from compiler.wording import SNIPPET_FILE, line_list

_COMMAND = re.compile(r"(?P<indentation>\s*)[!%](?P<text>.*)")
_PROMPT = re.compile(r"\s*(?:>>>|\.\.\.|In ?\[\d+\]:|\.\.\.:)(?: (?P<text>.*))?$")
_TIMED = re.compile(r"time(?:it)?\s+(?:-[nr]\s*\d+\s+|-[a-z]\s+)*(?P<statement>[^-\s].*)")


@dataclass
class Commands:
    """The lines of commands, from 1: those that were left out, and those of which the timed statement stays. It
    `has_prompts` where the program was copied from a session."""

    left_out: list[int] = field(default_factory=list)
    timed: list[int] = field(default_factory=list)
    has_prompts: bool = False

    @property
    def notes(self) -> list[tuple[str, int]]:
        """What the reader must know, each with its line."""
        told = []
        if self.has_prompts:
            told.append(("The prompts of a session were left out, and the lines without one, which it printed.", 1))
        if self.left_out:
            told.append((f"Commands of a notebook were left out: {line_list(self.left_out)}.", self.left_out[0]))
        if self.timed:
            told.append((f"What `%timeit` or `%time` times was run once: {line_list(self.timed)}.", self.timed[0]))
        return told


def parse_without_commands(source: str) -> tuple[ast.Module, Commands]:
    """The program, of which such lines are no part. Raises SyntaxError where it is none without them either. It is one
    of a session if its first line has a prompt."""
    commands = Commands()
    try:
        return ast.parse(source, SNIPPET_FILE), commands
    except SyntaxError as error:
        lines = source.split("\n")
        if _PROMPT.match(source.lstrip().partition("\n")[0]):
            commands.has_prompts = True
            lines = [found["text"] or "" if (found := _PROMPT.match(line)) else "" for line in lines]
        lines = [_as_python(line, number, commands) for number, line in enumerate(lines, start=1)]
        try:
            return ast.parse("\n".join(lines), SNIPPET_FILE), commands
        except SyntaxError:
            raise error from None


def _as_python(line: str, number: int, commands: Commands) -> str:
    command = _COMMAND.match(line)
    if command is None:
        return line
    timed = _TIMED.match(command["text"])
    (commands.left_out if timed is None else commands.timed).append(number)
    return command["indentation"] + ("pass" if timed is None else timed["statement"])
