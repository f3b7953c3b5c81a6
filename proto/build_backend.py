"""The PEP 517 build backend of the contract: setuptools, after the code has been generated.

Only wheels are built: `pip install ./proto` and `pip wheel ./proto` are the ways to get the package.
"""

import shutil

from generate import PROTO_ROOT, generate
from setuptools import build_meta


def build_wheel(wheel_directory: str, config_settings: object = None, metadata_directory: str | None = None) -> str:
    """Generates the package and builds its wheel (PEP 517)."""
    build = PROTO_ROOT / "build"
    shutil.rmtree(build, ignore_errors=True)  # setuptools would pack modules of files that are gone
    generate(build / "python")
    name: str = build_meta.build_wheel(wheel_directory, config_settings, metadata_directory)
    return name


def build_sdist(sdist_directory: str, config_settings: object = None) -> str:
    """Refuses: a source distribution would hold generated code (PEP 517)."""
    raise NotImplementedError(f"statecast-contract is built as a wheel only; cannot build into {sdist_directory}")
