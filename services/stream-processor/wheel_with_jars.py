"""The PEP 517 build backend of the stream-processor: setuptools, and the jars of jvm/ in the wheel.

The installed wheel needs Java, and no Maven. Images are built without jvm/, with jars from another stage.
"""

import shutil
import subprocess
from pathlib import Path
from tempfile import TemporaryDirectory

from setuptools import build_meta
from setuptools.build_meta import build_editable as build_editable

FOLDER = Path(__file__).parent
IN_PACKAGE = FOLDER / "src" / "stream_processor" / "jars"


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    """Builds the wheel, with the jars where jvm/ is (PEP 517). Raises FileNotFoundError without Maven."""
    jvm = FOLDER / "jvm"
    try:
        if jvm.is_dir():
            _add_jars(jvm)
        name: str = build_meta.build_wheel(wheel_directory)
    finally:
        for copied in (IN_PACKAGE, *(FOLDER / "build").glob("lib/stream_processor/jars")):
            shutil.rmtree(copied, ignore_errors=True)  # the next build may have other versions
    return name


def _add_jars(jvm: Path) -> None:
    """Builds the jars aside: an archive of classes fits those of jvm/target as they are."""
    with TemporaryDirectory() as directory:
        pom = shutil.copytree(jvm, Path(directory) / "jvm", ignore=shutil.ignore_patterns("target")) / "pom.xml"
        subprocess.run(["mvn", "-q", "-B", "-ntp", "-f", str(pom), "package", "-DskipTests"], check=True)
        shutil.copytree(pom.parent / "target" / "jars", IN_PACKAGE, dirs_exist_ok=True)
