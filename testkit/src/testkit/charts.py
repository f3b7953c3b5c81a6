"""Runs Helm on the charts of this repository."""

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

ROOT = Path(__file__).resolve().parents[3]
STATECAST = ROOT / "infra" / "charts" / "statecast"
"""The chart that installs all others."""

CHARTS = {each.name: each.resolve() for each in STATECAST.glob("charts/*") if each.name != "statecast-library"}
"""The charts of the services and of jobs, by name."""

KUBERNETES = "1.37"
HELM_S = 600
Object = dict[str, Any]


class HelmError(Exception):
    """A command of Helm failed; the text is its output."""


def helm_program() -> str | None:
    """Returns the path of Helm, beside this Python or else on the path; None when there is none."""
    return shutil.which("helm", path=os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")]))


def helm(*arguments: str, timeout_s: float = HELM_S) -> str:
    """Returns the output of a command. Raises HelmError, also when there is no Helm."""
    program = helm_program()
    if program is None:
        raise HelmError("there is no Helm: `make charts` builds it, with Go")
    ended = subprocess.run([program, *arguments], capture_output=True, text=True, timeout=timeout_s, check=False)
    if ended.returncode:
        raise HelmError(f"helm {' '.join(arguments)}\n{ended.stdout}{ended.stderr}")
    return ended.stdout


def value_flags(values: Mapping[str, Any]) -> list[str]:
    """Returns the flags for values by their path, such as `ws-edge.replicas`."""
    return [flag for path, value in values.items() for flag in ("--set-json", f"{path}={json.dumps(value)}")]


def render(
    chart: Path, values: Mapping[str, Any] | None = None, *flags: str, namespace: str = "statecast"
) -> list[Object]:
    """Returns the objects that a chart installs. Raises HelmError for values that it refuses."""
    options = ["--namespace", namespace, "--kube-version", KUBERNETES, *value_flags(values or {}), *flags]
    documents = yaml.safe_load_all(helm("template", chart.name, str(chart), *options))
    return [each for each in documents if each]
