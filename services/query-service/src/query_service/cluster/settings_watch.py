"""Notices members with other values of settings that must be the same at all instances."""

from dataclasses import dataclass, field

import structlog

from query_service.cluster.view import View
from query_service.logged import Logged
from query_service.metrics import Metrics

_log = structlog.get_logger()


@dataclass(eq=False)
class SettingsWatch:
    """A watch on the `settings` that members report, by which all of them compute who holds a partition.

    With different ones they disagree: some partitions have fewer replicas, or are copied although others wait. What a
    member of an older release does not report is not compared.
    """

    view: View
    metrics: Metrics
    _logged: Logged = field(default_factory=Logged, init=False)

    def update(self) -> None:
        """Logs the members that differ when they are others than before, and counts them."""
        own = self.view.me.settings
        others = {
            each.instance: differing
            for each in self.view.shard_map.members
            if (differing := {name: value for name, value in each.settings.items() if own.get(name, value) != value})
        }
        self.metrics.settings_differ.set(len(others))
        if self._logged.is_new("others", others) and others:
            _log.error("settings differ that must be the same at all instances", own=dict(own), others=others)
