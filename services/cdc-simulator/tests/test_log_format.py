"""How the log looks."""

import io
import json
from collections.abc import Iterator

import pytest
import structlog

from cdc_simulator.log_format import configure_log


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    structlog.reset_defaults()


def test_each_line_is_a_json_object_where_nobody_watches() -> None:
    stream = io.StringIO()
    configure_log(stream, "info")
    structlog.get_logger().info("ready", rows=5)

    line = json.loads(stream.getvalue())
    assert (line["event"], line["level"], line["rows"]) == ("ready", "info", 5)


def test_it_is_for_people_on_a_terminal() -> None:
    stream = Terminal()
    configure_log(stream, "info")
    structlog.get_logger().info("ready")

    assert "ready" in stream.getvalue()
    assert not stream.getvalue().startswith("{")


def test_what_is_below_the_level_is_left_out() -> None:
    stream = io.StringIO()
    configure_log(stream, "warning")
    structlog.get_logger().info("ready")

    assert stream.getvalue() == ""
