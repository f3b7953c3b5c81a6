"""A Kubernetes cluster, by its `kubectl`."""

import json
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testkit.waiting import scaled, wait_until

COMMAND_S = 120
ROLLOUT_S = 420
POLL_S = 0.5

Object = dict[str, Any]


class KubectlError(Exception):
    """A command of kubectl failed; the text is the command and its output."""


@dataclass(frozen=True)
class Cluster:
    """The cluster that a file names, without one that of KUBECONFIG; `kubectl` is the program, a name or a path."""

    kubeconfig: Path | None = None
    kubectl: str = "kubectl"

    def run(self, *arguments: str, text: str | None = None, timeout_s: float = COMMAND_S) -> str:
        """Returns the command's standard output; `text` is its standard input.

        Raises KubectlError when it fails, subprocess.TimeoutExpired when it takes longer than `timeout_s`, scaled.
        """
        result = subprocess.run(
            self.command(*arguments),
            input=text,
            capture_output=True,
            text=True,
            timeout=scaled(timeout_s),
            check=False,
        )
        if result.returncode:
            raise KubectlError(f"kubectl {' '.join(arguments)}\n{result.stdout}{result.stderr}")
        return result.stdout

    def command(self, *arguments: str) -> list[str]:
        """Returns the command line, for those who start it themselves."""
        named = ["--kubeconfig", str(self.kubeconfig)] if self.kubeconfig else []
        return [self.kubectl, *named, *arguments]

    def apply(self, objects: Iterable[Object]) -> None:
        """Creates or changes objects, in their order."""
        documents = {"apiVersion": "v1", "kind": "List", "items": list(objects)}
        self.run("apply", "--filename", "-", text=json.dumps(documents))

    def get(self, kind: str, name: str, namespace: str) -> Object:
        """Returns one object. Raises KubectlError when there is none."""
        named: Object = json.loads(self.run("-n", namespace, "get", kind, name, "-o", "json"))
        return named

    def pods(self, namespace: str, selector: str = "") -> list[Object]:
        """Returns the pods that a label selector selects; without one, all of the namespace."""
        return self.objects("pods", namespace, selector)

    def objects(self, kinds: str, namespace: str, selector: str = "") -> list[Object]:
        """Returns all objects of one or more kinds, `kind,kind`, that a label selector selects."""
        answer = json.loads(self.run("-n", namespace, "get", kinds, "--selector", selector, "-o", "json"))
        items: list[Object] = answer["items"]
        return items

    def wait_rolled(self, namespace: str, workload: str) -> None:
        """Returns when all pods of the workload are of its newest template and ready.

        Raises AssertionError that says how the pods of the namespace are, when that takes too long.
        """
        limit = f"--timeout={scaled(ROLLOUT_S):.0f}s"
        try:
            self.run("-n", namespace, "rollout", "status", workload, limit, timeout_s=ROLLOUT_S + COMMAND_S)
        except KubectlError as error:
            raise AssertionError(f"{error}\n{self.report(namespace)}") from error

    def wait_done(self, namespace: str, job: str) -> None:
        """Returns when all pods of the job have succeeded; raises AssertionError like `wait_rolled`."""

        def done() -> bool:
            seen = self.get("job", job, namespace)
            return bool(seen["status"].get("succeeded") == seen["spec"]["completions"])

        wait_until(done, lambda: f"{job} has not succeeded\n{self.report(namespace)}", ROLLOUT_S, POLL_S)

    def wait_gone(self, namespace: str, kind: str, name: str) -> None:
        """Returns when there is no such object; raises KubectlError when it stays."""
        self.run(
            *("-n", namespace, "wait", "--for=delete", f"{kind}/{name}", f"--timeout={scaled(COMMAND_S):.0f}s"),
            timeout_s=2 * COMMAND_S,
        )

    def execute(self, namespace: str, pod: str, command: Sequence[str], timeout_s: float = COMMAND_S) -> str:
        """Returns the output of a command in a pod. Raises KubectlError when it fails."""
        return self.run("-n", namespace, "exec", pod, "--", *command, timeout_s=timeout_s)

    def report(self, namespace: str) -> str:
        """Returns the state of the pods, the last warnings, and the last log lines of pods that are not ready."""
        parts = [
            self._told("-n", namespace, "get", "pods", "-o", "wide"),
            self._told(
                "-n", namespace, "get", "events", "--sort-by=.lastTimestamp", "--field-selector", "type=Warning"
            ),
        ]
        for pod in self.pods(namespace):
            states = pod["status"].get("containerStatuses", [])
            if not all(each["ready"] for each in states) and pod["status"]["phase"] != "Succeeded":
                parts.append(self._told("-n", namespace, "logs", "--tail=30", pod["metadata"]["name"]))
        return "\n".join(parts)

    def _told(self, *arguments: str) -> str:
        try:
            return self.run(*arguments)
        except KubectlError as error:
            return str(error)
