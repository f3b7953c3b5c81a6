"""How the log looks: one JSON object a line, or lines for people on a terminal."""

import logging
from typing import TextIO

import structlog


def configure_log(stream: TextIO, level: str) -> None:
    """Sends the log to `stream`, from `level` up."""
    renderer: structlog.typing.Processor
    renderer = structlog.dev.ConsoleRenderer() if stream.isatty() else structlog.processors.JSONRenderer()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            renderer,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.WriteLoggerFactory(stream),
    )
