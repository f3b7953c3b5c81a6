"""Brings images from the container engine of this machine into the node, and makes those that only the node needs.

The node knows an image by the name that the charts give it. A stand-in for an image of others has another name in
the engine, where it must not be taken for the real one.
"""

import io
import json
import shutil
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import IO

import envoy  # type: ignore[import-untyped]  # the package ships no types

import kong_envoy
from testkit.broker import LIBS
from testkit.containers.compose_file import read_compose_file
from testkit.containers.engine import ContainerError, Engine
from testkit.containers.images import COMPOSE_FILE, builds
from testkit.kubernetes.node_files import PAUSE_IMAGE

OWN_IMAGE = "statecast/"
"""The beginning of the names of this project's images."""

COREDNS_IMAGE = "statecast-node/coredns:1"
ENGINES_OWN = "localhost/"
"""Podman's prefix of the name of an image that was built here."""
STAND_INS = {"kafka": "apache/kafka:4.3.1", "kong": "kong:3.9", "spark": "apache/spark:4.3.0"}
"""The images that stand-ins take the place of, as the charts name them."""
STAND_IN_BASES = {"kafka": "stream-processor", "kong": "ws-edge", "spark": "stream-processor"}
"""The services that have the programs of the stand-ins in their images."""
STAND_IN_FILES = Path(__file__).with_name("stand_ins")


def import_images(
    engine: Engine, socket: Path, programs: Path, stand_ins: Sequence[str] = tuple(STAND_INS)
) -> Mapping[str, int]:
    """Imports this project's images, the node's own and stand-ins; their sizes in bytes, by their names in the charts.

    The node pulls all other images when a pod needs them. Raises ContainerError when an image is missing.
    """
    ours = builds(read_compose_file(COMPOSE_FILE, {}))
    names = {name: name for name in ours}
    missing = [name for name in names if not engine.succeeds("image", "inspect", name)]
    if missing:
        raise ContainerError(f"{', '.join(missing)} must be built: run `make images`")
    bases = {name.partition(":")[0].removeprefix(OWN_IMAGE): name for name in ours}
    made = {_stand_in(engine, name, bases[STAND_IN_BASES[name]]): STAND_INS[name] for name in stand_ins}
    names |= dict(_node_images(engine, programs)) | made
    _transfer(engine, socket, names)
    return {in_node: engine.size_bytes(name) for name, in_node in names.items()}


def _node_images(engine: Engine, programs: Path) -> Iterator[tuple[str, str]]:
    """Images of one program each, which needs nothing else."""
    for program, image in {"pause": PAUSE_IMAGE, "coredns": COREDNS_IMAGE}.items():
        with TemporaryDirectory() as context:
            shutil.copy2(programs / program, context)
            (Path(context) / "Dockerfile").write_text(
                f'FROM scratch\nCOPY {program} /{program}\nENTRYPOINT ["/{program}"]\n'
            )
            engine.run("build", "-t", image, context)
        yield image, image


def _stand_in(engine: Engine, name: str, base: str) -> str:
    """Builds a stand-in on an image of this project, and returns its name in the engine."""
    image = f"statecast-stand-in/{name}:{STAND_INS[name].rpartition(':')[2]}"
    needed = {
        "kafka": {"libs": LIBS},
        "kong": {f"packages/{each.__name__}": _home(each) for each in (kong_envoy, envoy)},
    }
    with TemporaryDirectory() as directory:
        context = Path(directory) / name
        shutil.copytree(STAND_IN_FILES / name, context)
        for place, source in needed.get(name, {}).items():
            shutil.copytree(source, context / place, ignore=shutil.ignore_patterns("__pycache__"))
        engine.run("build", "--build-arg", f"BASE={base}", "-t", image, str(context))
    return image


def _home(package: object) -> Path:
    [path] = package.__path__  # type: ignore[attr-defined]  # a package has one
    return Path(path)


def _transfer(engine: Engine, socket: Path, names: Mapping[str, str]) -> None:
    """Sends the images from the engine to containerd, under their names there. Raises ContainerError."""
    importing = ["ctr", "--address", str(socket), "--namespace", "k8s.io", "images", "import", "-"]
    with (
        subprocess.Popen(engine.saving(*names), stdout=subprocess.PIPE) as saved,
        subprocess.Popen(importing, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as imported,
    ):
        assert saved.stdout is not None
        assert imported.stdin is not None
        rename_images(saved.stdout, imported.stdin, names)
        imported.stdin.close()
        if saved.wait() or imported.wait():
            raise ContainerError(f"{' '.join(saved.args)} | {' '.join(importing)}")  # type: ignore[arg-type]


def rename_images(archive: IO[bytes], renamed: IO[bytes], names: Mapping[str, str]) -> None:
    """Copies an archive of images, in Docker's format, and gives the images other names. Neither is held in memory."""
    with (
        tarfile.open(fileobj=archive, mode="r|") as source,
        tarfile.open(fileobj=renamed, mode="w|", format=tarfile.PAX_FORMAT) as target,
    ):
        for member in source:
            if member.name in ("index.json", "oci-layout"):
                continue  # the other description of the same images, with their old names
            content = source.extractfile(member) if member.isfile() else None
            if member.name == "manifest.json" and content is not None:
                text = _renamed(content.read(), names)
                member.size, content = len(text), io.BytesIO(text)
            target.addfile(member, content)


def _renamed(manifest: bytes, names: Mapping[str, str]) -> bytes:
    images = json.loads(manifest)
    for image in images:
        image["RepoTags"] = [names[tag.removeprefix(ENGINES_OWN)] for tag in image["RepoTags"]]
    return json.dumps(images).encode()
