"""Reports a snapshot that comes to a pipeline with older rows: no record names the rows that were deleted meanwhile.

All rows of a snapshot name one place in the log, which tells one snapshot from another. Incremental snapshots are not
reported: the log goes on while they read, and has the deletions.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import structlog

from stream_processor.errors import CheckpointsUnusableError
from stream_processor.run.checkpoints import Checkpoints
from stream_processor.run.plan import QueryPlan
from stream_processor.steps.outcomes import READ, observed

log = structlog.get_logger()

AGAIN = (
    "a snapshot reads rows although there are some from before: those that were deleted meanwhile stay, unless the log "
    "told of it; compare with the table, or make a new generation of the keyed topic (docs/runbook.md)"
)
PLACE = "snapshot"


@dataclass
class Snapshots:
    """The place of the last snapshot of each pipeline, beside the checkpoints if there are any."""

    checkpoints: Checkpoints | None = None
    _places: dict[str, int | None] = field(default_factory=dict, init=False)
    """The place of the last snapshot by pipeline with rows, None before the first."""
    _again: dict[str, int] = field(default_factory=dict, init=False)

    def rows_read_again(self, plan: QueryPlan, progress: Mapping[str, Any], applied: bool) -> int:
        """Returns how many rows of a batch are of a snapshot that is not the pipeline's first; logs each snapshot once.

        `applied` says whether the batch has changed any row.
        """
        if not plan.pipeline.knows_rows:
            return 0
        seen = observed(progress, f"{READ}0")
        rows, last = int(seen.get("snapshot_rows") or 0), int(seen.get("snapshot_last") or 0)
        if not (rows or applied):
            return 0
        known = self._known(plan)
        if rows:
            is_first = seen["snapshot_first"] == last and not _is_before(seen["change_first"], last)
            if not (is_first if not known else known[PLACE] == last):
                log.warning(AGAIN, pipeline=plan.name, rows=rows)
                self._again[plan.name] = last
        place = last if rows else known.get(PLACE)
        if known != {PLACE: place}:
            self._note(plan, place)
        return rows if rows and self._again.get(plan.name) == last else 0

    def _known(self, plan: QueryPlan) -> dict[str, int | None]:
        """Returns the note of a pipeline that has rows; an empty one for a pipeline without rows."""
        if plan.name not in self._places and self.checkpoints is not None:
            try:
                note = self.checkpoints.read(_note(plan)) or {}
            except CheckpointsUnusableError as error:
                log.warning("cannot read the note of the last snapshot", pipeline=plan.name, reason=str(error))
                return {}
            # A checkpoint that was made anew begins without rows, and has another epoch.
            if note.get("epoch") == plan.epoch:
                self._places[plan.name] = note[PLACE]
        return {PLACE: self._places[plan.name]} if plan.name in self._places else {}

    def _note(self, plan: QueryPlan, place: int | None) -> None:
        self._places[plan.name] = place
        if self.checkpoints is None:
            return
        try:
            self.checkpoints.replace(_note(plan), {PLACE: place, "epoch": plan.epoch})
        except CheckpointsUnusableError as error:
            log.warning("cannot write the note of the last snapshot", pipeline=plan.name, reason=str(error))


def _is_before(change: int | None, snapshot: int) -> bool:
    return change is not None and change < snapshot


def _note(plan: QueryPlan) -> str:
    return f"{plan.name}.{PLACE}.json"
