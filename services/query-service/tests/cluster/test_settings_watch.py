"""Members that have other settings, where all must have the same, are logged once."""

from dataclasses import replace

from structlog.testing import capture_logs

from query_service.cluster.settings_watch import SettingsWatch
from query_service.cluster.shard_map import ShardMap
from query_service.cluster.view import View
from query_service.metrics import Metrics
from query_service.settings import Settings


def test_members_that_differ_are_named_when_they_are_others_than_before(view: View, metrics: Metrics) -> None:
    common = Settings().common
    view.me = replace(view.me, settings=common)
    same, older = (replace(view.me, instance=name, settings=each) for name, each in (("same", common), ("older", {})))
    watch = SettingsWatch(view, metrics)

    def differing(*others_settings: Settings) -> list[dict[str, dict[str, str]]]:
        every = enumerate(others_settings, 2)
        others = {replace(view.me, instance=f"query-{at}", settings=each.common) for at, each in every}
        view.shard_map = ShardMap(frozenset({view.me, same, older, *others}), 2)
        with capture_logs() as logs:
            watch.update()
            watch.update()
        assert metrics.registry.get_sample_value("query_service_settings_differ") == len(others_settings)
        return [log["others"] for log in logs]

    assert differing() == []
    assert differing(Settings(replicas=1)) == [{"query-2": {"REPLICAS": "1"}}]
    assert differing(Settings(replicas=1)) == []
    assert differing(Settings(zone="a"), Settings(replace_after_s=5)) == [
        {"query-2": {"ZONE": "set"}, "query-3": {"REPLACE_AFTER_S": "5"}}
    ]
    assert differing() == []
