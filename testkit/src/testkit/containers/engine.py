"""Docker or Podman, whichever this machine has, by the commands that both understand."""

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ENGINES = ("docker", "podman")
"""Docker first: where Podman stands in for it under its name, either does."""

ANSWER_S = 30
COMMAND_S = 1800
PODMAN_LIMITS = ("--ulimit", "nofile=4096:4096", "--ulimit", "nproc=4096:4096")
"""As root, Podman raises the limits of a container beyond its own, which not every machine lets it."""


class NoEngineError(Exception):
    """No container engine answers on this machine; the text names the engines that were tried."""


class ContainerError(Exception):
    """A command of the engine failed; the text is the command and its output."""


@dataclass(frozen=True)
class Engine:
    """One engine that answers; `program` is docker, podman, or a path to one of them."""

    program: str

    def run(self, *arguments: str, timeout_s: float = COMMAND_S, merged: bool = False) -> str:
        """Returns the command's standard output, with standard error if `merged`.

        Raises ContainerError when it fails, subprocess.TimeoutExpired when it takes longer than `timeout_s`.
        """
        result = self._result(arguments, timeout_s)
        if result.returncode:
            raise ContainerError(f"{self.program} {' '.join(arguments)}\n{result.stdout}{result.stderr}")
        return (result.stdout + (result.stderr if merged else "")).strip()

    def succeeds(self, *arguments: str, timeout_s: float = COMMAND_S) -> bool:
        """Returns whether the command ends with status 0 in time."""
        try:
            return self._result(arguments, timeout_s).returncode == 0
        except subprocess.TimeoutExpired:
            return False

    def size_bytes(self, image: str) -> int:
        """Returns the size of an image with all its layers, uncompressed. Raises ContainerError when there is none."""
        return int(self.run("image", "inspect", "--format", "{{.Size}}", image))

    def saving(self, *images: str) -> Sequence[str]:
        """Returns the command that writes an archive of images, which shares their layers, to standard output."""
        return [self.program, "save", *(["--multi-image-archive"] if self._is_podman else []), *images]

    @property
    def limits(self) -> Sequence[str]:
        """Flags of `run` that let a container start where limits cannot be raised."""
        return PODMAN_LIMITS if self._is_podman else ()

    @property
    def _is_podman(self) -> bool:
        return Path(self.program).name == "podman"

    def _result(self, arguments: Sequence[str], timeout_s: float) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [self.program, *arguments], capture_output=True, text=True, timeout=timeout_s, check=False
        )


def find_engine(environment: Mapping[str, str] = os.environ) -> Engine:
    """Returns the engine that CONTAINER_ENGINE names, else the first that answers. Raises NoEngineError."""
    chosen = environment.get("CONTAINER_ENGINE")
    tried = {}
    for program in [chosen] if chosen else ENGINES:
        if shutil.which(program) is None:
            tried[program] = "is not installed"
        elif not Engine(program).succeeds("info", timeout_s=ANSWER_S):
            tried[program] = "is installed, and `info` fails"
        else:
            return Engine(program)
    raise NoEngineError("no container engine: " + ", ".join(f"{program} {why}" for program, why in tried.items()))
