"""A workload of the charts is ready when its newest pods are."""

import pytest

from testkit.kubernetes.deployment import is_ready


@pytest.mark.parametrize(
    ("status", "ready"),
    [
        ({"observedGeneration": 2, "readyReplicas": 2}, True),
        ({"observedGeneration": 1, "readyReplicas": 2}, False),
        ({"observedGeneration": 2, "readyReplicas": 1}, False),
        ({"observedGeneration": 2}, False),
    ],
)
def test_a_workload_is_ready_when_all_pods_of_its_newest_form_are(status: dict[str, int], ready: bool) -> None:
    workload = {"kind": "StatefulSet", "metadata": {"generation": 2}, "spec": {"replicas": 2}, "status": status}

    assert is_ready(workload) is ready
