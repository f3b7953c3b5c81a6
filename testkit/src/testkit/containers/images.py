"""Builds the images of compose.yaml that have a Dockerfile here, and jobs: `python -m testkit.containers.images`.

CONTAINER_ENGINE chooses between Docker and Podman, PYTHON_IMAGE and MAVEN_IMAGE name other base images, and
IMAGE_BUILD_FLAGS are flags of the engine's `build`, for example a proxy or a mounted cache of this machine.
"""

import os
import shlex
import sys
import time
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

from testkit.containers.compose_file import Build, ComposeFile, read_compose_file
from testkit.containers.engine import ContainerError, Engine, NoEngineError, find_engine

COMPOSE_FILE = Path(__file__).resolve().parents[4] / "infra" / "compose.yaml"
BASE = "_IMAGE"
"""How the names of the arguments end that say what an image is built on."""

PYTHON_IMAGE = "PYTHON_IMAGE"
JOBS = COMPOSE_FILE.parents[1] / "tools" / "jobs"
"""Starts on Kubernetes alone, by schedule."""

PULL_S = 300
MB = 1_000_000


def builds(compose: ComposeFile) -> Mapping[str, Build]:
    """Returns how each image of the file that is built here is built, and that of jobs, by its name with the tag."""
    of_services = {each.image: each.build for each in compose.services.values() if each.build}
    [base] = {build.args[PYTHON_IMAGE] for build in of_services.values()}
    version = tomllib.loads((JOBS / "pyproject.toml").read_text())["project"]["version"]
    jobs = Build(context="..", dockerfile="tools/jobs/Dockerfile", args={PYTHON_IMAGE: base})
    return {**of_services, f"statecast/jobs:{version}": jobs}


def missing_bases(compose: ComposeFile, engine: Engine) -> list[str]:
    """Returns the base images of the builds that are neither on this machine nor to be had from a registry."""
    arguments = [each for build in builds(compose).values() for each in build.args.items()]
    bases = sorted({image for name, image in arguments if name.endswith(BASE)})
    return [each for each in bases if not engine.succeeds("image", "inspect", each) and not _pulled(engine, each)]


def _pulled(engine: Engine, image: str) -> bool:
    return engine.succeeds("pull", "-q", image, timeout_s=PULL_S)


def build_images(engine: Engine, environment: Mapping[str, str] = os.environ) -> Iterator[tuple[str, float]]:
    """Builds one image after the other; yields its name and the seconds it took. Raises ContainerError."""
    flags = shlex.split(environment.get("IMAGE_BUILD_FLAGS", ""))
    for image, build in builds(read_compose_file(COMPOSE_FILE, environment)).items():
        context = (COMPOSE_FILE.parent / build.context).resolve()
        arguments = [flag for name, value in build.args.items() for flag in ("--build-arg", f"{name}={value}")]
        began = time.monotonic()
        engine.run("build", *flags, *arguments, "-f", str(context / build.dockerfile), "-t", image, str(context))
        yield image, time.monotonic() - began


def main() -> None:
    """Builds all images and prints the size of each; ends with status 1 and the engine's words when one fails."""
    try:
        engine = find_engine()
        for image, took_s in build_images(engine):
            print(f"{image:40} {engine.size_bytes(image) / MB:6.0f} MB  {took_s:5.0f} s", flush=True)  # noqa: T201
    except (NoEngineError, ContainerError) as error:
        sys.exit(str(error))


if __name__ == "__main__":
    main()
