"""Logs are JSON lines for machines."""

import json
import logging
from collections.abc import Iterator

import pytest
import structlog

from ws_edge import logs


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    """Leaves logging as it was for the other tests."""
    root = logging.getLogger()
    handlers, level = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = handlers, level
    structlog.reset_defaults()


def test_own_logs_and_those_of_libraries_are_json_lines(capsys: pytest.CaptureFixture[str]) -> None:
    logs.configure()
    structlog.get_logger("test").info("socket_opened", consumer="customer-0001")
    logging.getLogger("uvicorn.error").warning("something %s", "odd")
    logging.getLogger("uvicorn.error").info("chatter")
    own, foreign = (json.loads(line) for line in capsys.readouterr().err.splitlines())

    assert (own["event"], own["consumer"], own["level"]) == ("socket_opened", "customer-0001", "info")
    assert (foreign["event"], foreign["level"]) == ("something odd", "warning")
    assert own["timestamp"].endswith("Z")
