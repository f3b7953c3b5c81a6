"""The definition of a process of the stack, with its readiness probe."""

import signal
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

# Returns the reason why a process is not ready, for people; empty if it is. Blocks for 3 s at most, and never raises.
Probe = Callable[[], str]


@dataclass(frozen=True)
class ProcessSpec:
    """One process of the stack. One that ends is started again, unless it `may_end`."""

    name: str
    command: Sequence[str]
    environment: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None  # without one, a process is ready once it is done
    after: tuple[str, ...] = ()  # processes that must have been ready once before this one starts
    prepare: Callable[[], object] | None = None  # called before each start; may block, and raise a LocalStackError
    may_end: bool = False  # whether it is done when it ends with status 0
    stops_by: signal.Signals = signal.SIGTERM
    stops_last: bool = False  # it is stopped when all others have ended
