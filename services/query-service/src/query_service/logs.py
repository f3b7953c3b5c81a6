"""Sets up the logs: JSON lines for machines, aligned text on a terminal."""

import logging
import sys

import structlog


def set_up(level: str, instance: str) -> None:
    """Sends everything from `level` on to standard error, with the instance's name in each line."""
    on_terminal = sys.stderr.isatty()
    structlog.configure(
        processors=[
            structlog.contextvars.merge_contextvars,
            structlog.processors.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            _named(instance),
            *([] if on_terminal else [structlog.processors.format_exc_info]),
            structlog.dev.ConsoleRenderer() if on_terminal else structlog.processors.JSONRenderer(),
        ],
        wrapper_class=structlog.make_filtering_bound_logger(logging.getLevelNamesMapping()[level.upper()]),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


def _named(instance: str) -> structlog.typing.Processor:
    def add(_: object, __: str, event: structlog.typing.EventDict) -> structlog.typing.EventDict:
        event["instance"] = instance
        return event

    return add
