"""Which files of a domain's directory are pipelines."""

from collections.abc import Iterable
from pathlib import Path

from statecast_domains.errors import DomainFileError

DOMAIN_FILE = "domain.yaml"
"""The file beside a domain's pipelines that is none of them."""


def pipeline_files(paths: Iterable[Path]) -> list[Path]:
    """Returns the pipeline files of the paths, each once: of a directory, its `*.yaml` and those one level below.

    Leaves out `domain.yaml`, so that `orders/*.yaml` can be passed, and names that begin with a dot, which mounted
    ConfigMaps contain. Raises DomainFileError for a directory without pipelines.
    """
    files: dict[Path, None] = {}
    for path in paths:
        inside = _inside(path) if path.is_dir() else [path]
        pipelines = [file for file in inside if file.name != DOMAIN_FILE]
        if path.is_dir() and not pipelines:
            raise DomainFileError(str(path), "", "is a directory without a pipeline's file: *.yaml")
        files |= dict.fromkeys(pipelines)
    return list(files)


def _inside(directory: Path) -> list[Path]:
    files = [*directory.glob("*.yaml"), *directory.glob("*/*.yaml")]
    return sorted(file for file in files if not any(part[0] == "." for part in file.relative_to(directory).parts))
