"""Log lines: coloured text for a person at a terminal, JSON for a machine that collects them."""

from __future__ import annotations

import sys
from typing import Literal

import structlog
from structlog.typing import Processor


def configure(log_format: Literal["auto", "console", "json"] = "auto") -> None:
    """Logs go to stderr: stdout is for what a command was asked for."""
    as_text = log_format == "console" or (log_format == "auto" and sys.stderr.isatty())
    renderer: Processor = structlog.dev.ConsoleRenderer() if as_text else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            *([] if as_text else [structlog.processors.dict_tracebacks]),
            renderer,
        ],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )
