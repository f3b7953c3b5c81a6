"""What there is to know about a process before it is started."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from local_stack.probe import Probe


@dataclass(frozen=True)
class ProcessSpec:
    """One process of the stack.

    `after` names the processes that must have been ready once before this one starts. `prepare` is called before the
    first start; it may block, and raise a LocalStackError. A process that ends with status 0 is done when it
    `may_end`, and is started again otherwise. Without a probe a process is ready once it is done. One that
    `stops_last` is stopped when all others have ended.
    """

    name: str
    command: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    probe: Probe | None = None
    after: tuple[str, ...] = ()
    prepare: Callable[[], None] | None = None
    may_end: bool = False
    stops_last: bool = False
