"""Tags of this project's images in compose files and pages: each is the version of the part that has the image."""

import re
from pathlib import Path

import yaml


def images_of(root: Path, part: str) -> set[str]:
    """Returns the names of the images, without tags, that the compose files build from a Dockerfile of a part."""
    files = (yaml.safe_load(file.read_text()) for file in root.glob("infra/compose*.yaml"))
    built = [each for file in files for each in file["services"].values() if "build" in each]
    return {each["image"].partition(":")[0] for each in built if each["build"]["dockerfile"].startswith(f"{part}/")}


def tagged(root: Path) -> list[Path]:
    """Returns the files that may name images: YAML and Markdown of `infra`."""
    return [each for suffix in ("yaml", "md") for each in root.glob(f"infra/**/*.{suffix}") if each.is_file()]


def set_tags(root: Path, part: str, version: str) -> None:
    """Writes the version into every tag of the part's images. A repository without `infra` has none."""
    images = images_of(root, part)
    tag = re.compile(rf"\b({'|'.join(sorted(images))}):\d[\w.]*\b")
    for file in tagged(root) if images else ():
        before = file.read_text()
        after = tag.sub(rf"\g<1>:{version}", before)
        if after != before:
            file.write_text(after)
