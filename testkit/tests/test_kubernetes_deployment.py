"""The manifests are deployed as they are, but for where a cluster takes this project's images from."""

from typing import Any

import pytest
import yaml

from testkit.kubernetes.deployment import MANIFESTS, is_ready, read_manifests

FILES = sorted(MANIFESTS.glob("*.yaml"))


def images(objects: list[Any]) -> set[str]:
    pods = [each["spec"]["template"]["spec"] for each in objects if "template" in each.get("spec", {})]
    return {container["image"] for pod in pods for container in pod["containers"]}


def test_without_a_prefix_the_manifests_stay_as_they_are() -> None:
    assert read_manifests(*FILES) == [each for file in FILES for each in yaml.safe_load_all(file.read_text())]


def test_a_prefix_goes_before_the_images_of_this_project_only() -> None:
    before, after = images(read_manifests(*FILES)), images(read_manifests(*FILES, image_prefix="registry:5000/team/"))

    assert after == {f"registry:5000/team/{each}" if each.startswith("statecast/") else each for each in before}
    assert before & after == {"apache/kafka:4.3.1", "kong:3.9"}


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
