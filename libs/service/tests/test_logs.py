"""Logs of the service and of its libraries look alike."""

import io
import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from statecast_service.logs import configure_logs


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leaves logging as it was for the other tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def test_own_lines_and_those_of_libraries_are_json_objects() -> None:
    stream = io.StringIO()
    configure_logs(instance="edge-1", stream=stream)
    structlog.get_logger("test").info("socket_opened", consumer="customer-0001")
    logging.getLogger("uvicorn.error").warning("something %s", "odd")
    logging.getLogger("uvicorn.error").info("chatter")
    own, foreign = (json.loads(line) for line in stream.getvalue().splitlines())

    assert (own["event"], own["consumer"], own["level"]) == ("socket_opened", "customer-0001", "info")
    assert (foreign["event"], foreign["level"]) == ("something odd", "warning")
    assert own["instance"] == foreign["instance"] == "edge-1"
    assert own["timestamp"].endswith("Z")


def test_they_are_for_people_on_a_terminal() -> None:
    stream = Terminal()
    configure_logs(stream=stream)
    structlog.get_logger().info("ready")

    assert "ready" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


@pytest.mark.parametrize("stream", [io.StringIO(), Terminal()], ids=["json", "terminal"])
def test_exceptions_are_written_out(stream: io.StringIO) -> None:
    configure_logs(stream=stream)
    empty: dict[str, str] = {}
    try:
        empty["lost"]
    except KeyError:
        structlog.get_logger().exception("failed")

    assert "Traceback (most recent call last)" in stream.getvalue()
    assert "KeyError: 'lost'" in stream.getvalue()


def test_what_is_below_the_level_is_left_out() -> None:
    stream = io.StringIO()
    configure_logs("error", stream=stream)
    structlog.get_logger().warning("slow")
    logging.getLogger("uvicorn.error").warning("odd")

    assert stream.getvalue() == ""


def test_a_second_call_changes_loggers_that_exist() -> None:
    first, second = io.StringIO(), io.StringIO()
    logger = structlog.get_logger()
    configure_logs(stream=first)
    logger.info("before")
    configure_logs(instance="edge-1", stream=second)
    logger.info("after")

    assert json.loads(first.getvalue())["event"] == "before"
    assert json.loads(second.getvalue())["instance"] == "edge-1"
