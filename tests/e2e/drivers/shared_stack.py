"""A stack that many stories share: a story that kills a part waits until it is ready again, and may do so often."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import pytest

from local_stack.running_stack import RunningStack, running_stack
from local_stack.settings import Settings
from testkit.waiting import scaled

EDGES_PATIENCE_S = {"WS_EDGE_STALL_TIMEOUT_S": 20, "WS_EDGE_PING_INTERVAL_S": 25, "WS_EDGE_PING_TIMEOUT_S": 20}
"""The edges' default time limits for clients; a slow machine needs them stretched like all other time-outs."""


@contextmanager
def shared_stack(directory: Path, **settings: Any) -> Iterator[RunningStack]:
    """Starts a stack with these settings, and stops it."""
    patient = Settings(
        directory=directory, start_timeout_s=scaled(180), restart_max_s=0.5, restart_limit=1000, **settings
    )
    with ExitStack() as ends:
        with pytest.MonkeyPatch.context() as environment:
            for name, seconds in EDGES_PATIENCE_S.items():
                environment.setenv(name, str(scaled(seconds)))
            running = ends.enter_context(running_stack(patient))
        yield running
