"""Watching one job from outside: its time, its output, its reports, and its end.

`Channel` is the parent's connection with the service. `JobProcess.watch` relays what the child writes, in order and
counted, until the child ends or oversteps a limit, and then makes sure that nothing of it is left.
"""

from __future__ import annotations

import os
import selectors
import signal
import time

from pydantic import BaseModel

from server.sandbox import processes
from server.worker.messages import Cancel, Ended, Ending, Log, ReportAhead, Run, ToWorker

_CHUNK = 65536
_LAST_OUTPUT_BYTES = 8192
_MOST_REPORTS = 100
"""Far more than there are stages: only a snippet that writes to the pipe itself sends so many."""
_LOG_BYTES = 65536
"""Raw output that is passed on while the job runs; more is counted but not shown."""


class Channel:
    """Lines from and to the service, over two descriptors."""

    def __init__(self, incoming: int, outgoing: int) -> None:
        self.incoming = incoming
        self._outgoing = outgoing
        self._buffer = bytearray()

    def send(self, message: BaseModel, payload: bytes = b"") -> None:
        remaining = memoryview(message.model_dump_json().encode() + b"\n" + payload)
        while remaining:
            remaining = remaining[os.write(self._outgoing, remaining) :]

    def read_line(self) -> bytes | None:
        """The next line without its end; waits for it. None when the service has closed the connection."""
        while (line := self._take_line()) is None:
            chunk = os.read(self.incoming, _CHUNK)
            if not chunk:
                return None
            self._buffer += chunk
        return line

    def next_message(self) -> Run | Cancel | None:
        line = self.read_line()
        return None if line is None else ToWorker.validate_json(line)

    def messages_at_hand(self) -> list[Run | Cancel] | None:
        """Reads once, for when input is known to be there. None when the service has closed the connection."""
        chunk = os.read(self.incoming, _CHUNK)
        if not chunk:
            return None
        self._buffer += chunk
        return self.messages_read()

    def messages_read(self) -> list[Run | Cancel]:
        """Those that came together with one that was taken: of these the descriptor tells nothing any more."""
        found: list[Run | Cancel] = []
        while (line := self._take_line()) is not None:
            found.append(ToWorker.validate_json(line))
        return found

    def _take_line(self) -> bytes | None:
        end = self._buffer.find(b"\n")
        if end < 0:
            return None
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line


class JobProcess:
    """A child under way. The pipes are the reading ends of what it writes."""

    def __init__(self, job: str, process: int, reports: int, output: int, output_limit: int, report_limit: int) -> None:
        self._job = job
        self._process = process
        self._reports = reports
        self._output = output
        self._output_limit = output_limit
        self._report_limit = report_limit
        self._line = bytearray()
        self._reports_sent = 0
        self._output_bytes = 0
        self._last_output = b""
        os.set_blocking(reports, False)
        os.set_blocking(output, False)

    def watch(self, channel: Channel, wall_seconds: float) -> Ended:
        """Returns when the job is over and no process of it is left."""
        started = time.monotonic()
        ended = os.pidfd_open(self._process)
        selector = selectors.DefaultSelector()
        for descriptor in (ended, self._reports, self._output, channel.incoming):
            selector.register(descriptor, selectors.EVENT_READ)
        ending = self._listen(channel.messages_read())
        while ending is None:
            remaining = started + wall_seconds - time.monotonic()
            if remaining <= 0:
                ending = "time_limit"
                break
            for key, _ in selector.select(remaining):
                if key.fd == ended:
                    ending = "exited"
                elif key.fd == channel.incoming:
                    ending = self._listen(channel.messages_at_hand()) or ending
                elif not self._relay(key.fd, channel):
                    selector.unregister(key.fd)
                ending = self._overstepped() or ending
        selector.close()
        os.close(ended)
        return self._finish(channel, ending, started)

    def _finish(self, channel: Channel, ending: Ending, started: float) -> Ended:
        if ending != "exited":
            self._kill()
        _, status = os.waitpid(self._process, 0)
        wall_seconds = time.monotonic() - started
        processes.end_descendants(os.getpid())
        # What was written before the end is still in the pipes.
        if ending in ("exited", "time_limit"):
            for descriptor in (self._reports, self._output):
                while self._relay(descriptor, channel, is_last=True) and not self._overstepped():
                    continue
        if ending == "exited":
            ending = self._overstepped() or ending
        os.close(self._reports)
        os.close(self._output)
        return Ended(
            job=self._job,
            ending=ending,
            exit_code=os.WEXITSTATUS(status) if os.WIFEXITED(status) else None,
            signal=os.WTERMSIG(status) if os.WIFSIGNALED(status) else None,
            wall_seconds=wall_seconds,
            last_output=self._last_output.decode("utf-8", errors="replace"),
        )

    def _kill(self) -> None:
        try:
            os.killpg(self._process, signal.SIGKILL)
        except ProcessLookupError:
            os.kill(self._process, signal.SIGKILL)

    def _listen(self, messages: list[Run | Cancel] | None) -> Ending | None:
        if messages is None or any(isinstance(message, Cancel) and message.job == self._job for message in messages):
            return "cancelled"
        return None

    def _overstepped(self) -> Ending | None:
        if self._output_bytes > self._output_limit:
            return "output_limit"
        if len(self._line) > self._report_limit or self._reports_sent > _MOST_REPORTS:
            return "report_limit"
        return None

    def _relay(self, descriptor: int, channel: Channel, is_last: bool = False) -> bool:
        """Passes on what is there. False when the pipe has ended (or, at the last, is empty)."""
        try:
            chunk = os.read(descriptor, _CHUNK)
        except BlockingIOError:
            return not is_last
        if not chunk:
            return False
        if descriptor == self._reports:
            self._relay_reports(chunk, channel)
        else:
            self._relay_output(chunk, channel)
        return True

    def _relay_reports(self, chunk: bytes, channel: Channel) -> None:
        *complete, rest = chunk.split(b"\n")
        for end_of_line in complete:
            self._line += end_of_line
            self._reports_sent += 1
            if self._overstepped():
                return
            channel.send(ReportAhead(job=self._job, bytes=len(self._line)), bytes(self._line))
            self._line.clear()
        self._line += rest

    def _relay_output(self, chunk: bytes, channel: Channel) -> None:
        if self._output_bytes < _LOG_BYTES:
            channel.send(Log(job=self._job, text=chunk.decode("utf-8", errors="replace")))
        self._output_bytes += len(chunk)
        self._last_output = (self._last_output + chunk)[-_LAST_OUTPUT_BYTES:]
