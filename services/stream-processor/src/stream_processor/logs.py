"""Sets up structured logs: for people on a terminal, JSON lines anywhere else."""

import logging
import os
import sys
from collections.abc import Mapping

import structlog

from stream_processor.operation.status_line import StatusLine


def configure(status: StatusLine | None = None) -> None:
    """Sends logs to standard error, above the status line if there is one."""
    renderer = structlog.dev.ConsoleRenderer() if sys.stderr.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.processors.format_exc_info,
            renderer,
        ],
        logger_factory=structlog.WriteLoggerFactory(status or sys.stderr),  # type: ignore[arg-type]  # it only writes
        cache_logger_on_first_use=False,
    )
    # It warns of what is no expression, which the error says too.
    logging.getLogger("sqlglot").setLevel(logging.ERROR)


def status_line(environment: Mapping[str, str] = os.environ) -> StatusLine | None:
    """The line below the logs; None where standard error is no terminal, or NO_COLOR asks for plain text."""
    return StatusLine(sys.stderr) if sys.stderr.isatty() and not environment.get("NO_COLOR") else None
