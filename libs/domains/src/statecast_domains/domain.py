"""A domain: a directory of pipelines, and `domain.yaml` with its other parts."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from statecast_domains.directories import DOMAIN_FILE, pipeline_files
from statecast_domains.domain_file import DomainFile, read_domain_file
from statecast_domains.errors import DomainFileError, PipelineFileError
from statecast_domains.pipeline_file import PipelineFile, misplaced, read


@dataclass(frozen=True)
class Domain:
    """The files of a directory, each of them valid by itself."""

    directory: Path
    file: DomainFile
    pipelines: Mapping[Path, PipelineFile]

    @property
    def name(self) -> str:
        return self.directory.resolve().name

    @property
    def domain_file(self) -> Path:
        """The path of `domain.yaml`, which need not exist."""
        return self.directory / DOMAIN_FILE


def read_domains(directories: Iterable[Path]) -> list[Domain]:
    """Returns the domains, each once. A directory is a domain, or holds domains as directories.

    Raises DomainFileError, or PipelineFileError, naming the file, the key and the nearest valid name. Does not check
    that names are in the contract.
    """
    domain_directories = dict.fromkeys(each for directory in directories for each in _domain_directories(directory))
    return [_read(directory) for directory in domain_directories]


def _domain_directories(directory: Path) -> Sequence[Path]:
    if not directory.is_dir():
        raise DomainFileError(str(directory), "", "is not a directory: name one with the files of a domain")
    if any(directory.glob("*.yaml")):
        return [directory]
    inside = sorted(each for each in directory.iterdir() if each.name[0] != "." and any(each.glob("*.yaml")))
    if not inside:
        raise DomainFileError(str(directory), "", f"has no domain: a pipeline's file, or {DOMAIN_FILE}")
    return inside


def _read(directory: Path) -> Domain:
    beside = directory / DOMAIN_FILE
    definition = read_domain_file(beside) if beside.exists() else DomainFile.model_validate({})
    files = [file for file in sorted(directory.glob("*.yaml")) if file.name[0] != "."]
    pipelines = {file: read(file) for file in pipeline_files(files)}
    for file, pipeline in pipelines.items():
        for key, problem in misplaced(pipeline):
            raise PipelineFileError(str(file), key, problem)
    return Domain(directory, definition, pipelines)
