"""Configures logs: lines for people on a terminal, one JSON object a line anywhere else."""

import logging
import sys
from typing import Literal, Protocol

import structlog
from structlog.typing import Processor

LogLevel = Literal["debug", "info", "warning", "error"]


class LogStream(Protocol):
    """The stream that takes log lines: standard error, or a wrapper of it."""

    def write(self, text: str, /) -> object: ...
    def flush(self) -> object: ...
    def isatty(self) -> bool: ...


def configure_logs(level: LogLevel = "info", instance: str | None = None, stream: LogStream | None = None) -> None:
    """Sends all logs from `level` on to `stream`, or standard error; may be called again.

    Each line has the `instance`, if it is set. Libraries that use the standard library's logging (uvicorn, grpc) log
    from warnings on, in the same form.
    """
    stream = stream or sys.stderr
    shared: list[Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.processors.add_log_level,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        *([lambda _logger, _method, event: {"instance": instance, **event}] if instance else []),
    ]
    renderer: list[Processor] = (
        [structlog.dev.ConsoleRenderer(exception_formatter=structlog.dev.plain_traceback)]
        if stream.isatty()
        else [structlog.processors.format_exc_info, structlog.processors.JSONRenderer()]
    )
    number = logging.getLevelNamesMapping()[level.upper()]
    structlog.configure(
        processors=[*shared, *renderer],
        wrapper_class=structlog.make_filtering_bound_logger(number),
        logger_factory=structlog.WriteLoggerFactory(stream),  # type: ignore[arg-type]  # it only writes and flushes
        cache_logger_on_first_use=False,  # so that a second call changes loggers that exist
    )
    handler = logging.StreamHandler(stream)
    formatter = structlog.stdlib.ProcessorFormatter(
        foreign_pre_chain=shared, processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, *renderer]
    )
    handler.setFormatter(formatter)
    logging.basicConfig(level=max(number, logging.WARNING), handlers=[handler], force=True)
