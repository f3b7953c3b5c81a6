"""Compose files and pages name each image of this project with the version of its part."""

import re
import tomllib
from pathlib import Path

import pytest

from testkit.release.image_tags import images_of, set_tags, tagged

ROOT = Path(__file__).parents[2]
PARTS = ["infra", *sorted(str(each.parent.relative_to(ROOT)) for each in ROOT.glob("services/*/pyproject.toml"))]
COMPOSE = """\
services:
  demo:
    build: {context: .., dockerfile: services/demo/Dockerfile}
    image: statecast/demo:0.1.0
  other:
    build: {context: .., dockerfile: services/demo-two/Dockerfile}
    image: statecast/demo-two:0.1.0
  kafka:
    image: apache/kafka:4.3.1
"""


@pytest.mark.parametrize("part", PARTS)
def test_a_tag_is_the_version_of_the_part(part: str) -> None:
    version = tomllib.loads((ROOT / part / "pyproject.toml").read_text())["project"]["version"]
    images = "|".join(images_of(ROOT, part))
    named = {
        f"{file.relative_to(ROOT)}: {image}"
        for file in tagged(ROOT)
        for image in re.findall(rf"(?:{images}):\S+", file.read_text())
    }

    assert named
    assert [each for each in sorted(named) if not each.endswith(f":{version}")] == []


def test_a_release_sets_the_tags_of_its_own_images_alone(tmp_path: Path) -> None:
    compose, pod = tmp_path / "infra/compose.yaml", tmp_path / "infra/demo.yaml"
    pod.parent.mkdir(parents=True)
    compose.write_text(COMPOSE)
    pod.write_text("image: statecast/demo:0.1.0\n")
    set_tags(tmp_path, "services/demo", "0.2.0")

    assert compose.read_text() == COMPOSE.replace("demo:0.1.0", "demo:0.2.0")
    assert pod.read_text() == "image: statecast/demo:0.2.0\n"
