"""Instances that were started with other settings, where all must have the same."""

from functools import partial
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from instances.conftest import Process, Scene

pytestmark = pytest.mark.timeout(180)


async def test_instances_with_other_settings_are_named(scene: "Scene") -> None:
    one, two = scene.launch("query-1", replicas=1), scene.launch("query-2", replicas=2)
    await scene.until_ready(one, two)
    for process, other in ((one, '"query-2": {"REPLICAS": "2"}'), (two, '"query-1": {"REPLICAS": "1"}')):
        await scene.until(partial(_differs, process), process)

        assert "settings differ that must be the same at all instances" in process.log
        assert other in process.log


def _differs(process: "Process") -> bool:
    return process.metric("query_service_settings_differ") == 1
