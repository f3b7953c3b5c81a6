"""Builds the programs of a Kubernetes node from Go modules, once: `python -m testkit.kubernetes.programs`.

containerd, runc and the CNI plugins are the system's own. This module pins the versions of all programs that are built.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

KUBERNETES = "1.36.3"
ETCD = "3.6.8"
COREDNS = "1.14.7"
GO = "1.26.0"
"""The lowest version of Go that those above need."""

BUILD_S = 7200
OF_KUBERNETES = (
    "kube-apiserver",
    "kube-controller-manager",
    "kube-scheduler",
    "kube-proxy",
    "kubelet",
    "kubectl",
)
KUBERNETES_MODULE = "k8s.io/kubernetes"
ETCD_MAIN = """package main

import (
	"os"

	"go.etcd.io/etcd/server/v3/etcdmain"
)

func main() { etcdmain.Main(os.Args) }
"""
COREDNS_MAIN = """package main

import (
	"github.com/coredns/coredns/coremain"

	_ "github.com/coredns/coredns/plugin/cache"
	_ "github.com/coredns/coredns/plugin/errors"
	_ "github.com/coredns/coredns/plugin/kubernetes"
	_ "github.com/coredns/coredns/plugin/ready"
)

func main() { coremain.Run() }
"""
PAUSE_MAIN = """package main

import (
	"os"
	"os/signal"
	"syscall"
)

// Holds the namespaces of a pod until it is told to end.
func main() {
	ends := make(chan os.Signal, 1)
	signal.Notify(ends, syscall.SIGINT, syscall.SIGTERM)
	<-ends
}
"""


class BuildError(Exception):
    """A program could not be built; the text is the compiler's output, or names the missing tool."""


@dataclass(frozen=True)
class Module:
    """A Go module to build in: `go_mod` is its file, and `main` its program, if it has one of its own."""

    name: str
    go_mod: str
    main: str | None = None


def programs_directory(environment: Mapping[str, str] = os.environ) -> Path:
    """Returns where the programs of these versions are kept: below XDG_CACHE_HOME, by default ~/.cache."""
    cache = Path(environment.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "statecast" / f"kubernetes-{KUBERNETES}-etcd-{ETCD}-coredns-{COREDNS}"


def build_programs(directory: Path) -> Iterator[tuple[str, float]]:
    """Builds the missing programs; yields the name of each and its build time in seconds. Raises BuildError."""
    missing = [name for name in (*OF_KUBERNETES, "etcd", "coredns", "pause") if not (directory / name).exists()]
    if missing and shutil.which("go") is None:
        raise BuildError(f"{', '.join(missing)} must be built, and there is no Go: install Go {GO} or later")
    for name in missing:
        began = time.monotonic()
        _build(name, directory)
        yield name, time.monotonic() - began


def _build(name: str, directory: Path) -> None:
    module = _module(name, directory)
    sources = directory / "build" / module.name
    sources.mkdir(parents=True, exist_ok=True)
    (sources / "go.mod").write_text(module.go_mod)
    if module.main:
        (sources / "main.go").write_text(module.main)
    package = "." if module.main else f"{KUBERNETES_MODULE}/cmd/{name}"
    unfinished = sources / f"{name}.unfinished"
    _go(sources, "build", "-trimpath", "-ldflags", _linker_flags(), "-o", str(unfinished), package)
    unfinished.replace(directory / name)


def _module(name: str, directory: Path) -> Module:
    match name:
        case "etcd":
            return Module(name, _go_mod(name, f"require go.etcd.io/etcd/server/v3 v{ETCD}"), ETCD_MAIN)
        case "coredns":
            return Module(name, _go_mod(name, f"require github.com/coredns/coredns v{COREDNS}"), COREDNS_MAIN)
        case "pause":
            return Module(name, _go_mod(name), PAUSE_MAIN)
    return Module("kubernetes", _go_mod("kubernetes", *_kubernetes_requirements(directory / "build")))


def _go_mod(name: str, *lines: str) -> str:
    return "\n".join([f"module statecast/node/{name}", "", f"go {GO}", *lines, ""])


def _kubernetes_requirements(scratch: Path) -> list[str]:
    """Returns the requirements of Kubernetes itself, with the modules of its own tree at their published version.

    These are published as v0.36.3 when Kubernetes is 1.36.3.
    """
    scratch.mkdir(parents=True, exist_ok=True)
    answer = _go(scratch, "mod", "download", "-json", f"{KUBERNETES_MODULE}@v{KUBERNETES}")
    text = Path(json.loads(answer)["GoMod"]).read_text(encoding="utf-8")
    published = f"v0.{KUBERNETES.partition('.')[2]}"
    required = re.findall(r"^require \((.*?)^\)", text, re.MULTILINE | re.DOTALL)
    staged = re.findall(r"^\s+(k8s\.io/\S+) => \./staging", text, re.MULTILINE)
    modules = re.sub(r"(k8s\.io/\S+) v0\.0\.0(?=\s)", rf"\1 {published}", "".join(required))
    replaced = [f"replace {name} => {name} {published}" for name in staged]
    return ["require (", modules, ")", f"require {KUBERNETES_MODULE} v{KUBERNETES}", *replaced]


def _linker_flags() -> str:
    """Returns flags that give Kubernetes' programs their version; the others ignore names that they lack."""
    major, minor, _ = KUBERNETES.split(".")
    values = {
        "k8s.io/component-base/version": {"gitMajor": major, "gitMinor": minor, "gitVersion": f"v{KUBERNETES}"},
        "k8s.io/client-go/pkg/version": {"gitMajor": major, "gitMinor": minor, "gitVersion": f"v{KUBERNETES}"},
    }
    return " ".join(
        ["-s -w", *(f"-X {at}.{name}={text}" for at, each in values.items() for name, text in each.items())]
    )


def _go(directory: Path, *arguments: str) -> str:
    environment = {**os.environ, "CGO_ENABLED": "0", "GOFLAGS": "-mod=mod", "GOTOOLCHAIN": "local"}
    result = subprocess.run(
        ["go", *arguments], cwd=directory, env=environment, capture_output=True, text=True, timeout=BUILD_S, check=False
    )
    if result.returncode:
        raise BuildError(f"go {' '.join(arguments)}\n{result.stderr}")
    return result.stdout


def main() -> None:
    """Builds the missing programs and prints the directory; on failure prints the reason and exits with status 1."""
    directory = programs_directory()
    try:
        for name, took_s in build_programs(directory):
            print(f"{name:24} {took_s:5.0f} s", flush=True)  # noqa: T201
    except BuildError as error:
        sys.exit(str(error))
    print(directory)  # noqa: T201


if __name__ == "__main__":
    main()
