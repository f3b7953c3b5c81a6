"""Keeps the node's packet filter as the cluster's network policies say, in the network namespace of the node.

    python -m testkit.kubernetes.policy_enforcer KUBECONFIG

KUBECONFIG is the one of `NodeFiles`.
"""

import json
import ssl
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from threading import Event, Thread

import httpx

from testkit.kubernetes.network_policies import NetworkPolicies, Object, pods_of

NAMESPACES, PODS, POLICIES = PATHS = (
    "/api/v1/namespaces",
    "/api/v1/pods",
    "/apis/networking.k8s.io/v1/networkpolicies",
)
AGAIN_S = 0.5
TOGETHER_S = 0.02
"""Changes so soon after each other are one."""


class Watch(Thread):
    """Follows all objects of one kind; `objects` are those that there are, by their ids."""

    def __init__(self, client: httpx.Client, path: str, changed: Event) -> None:
        """Follows them once it is started, and sets `changed` after each change."""
        super().__init__(daemon=True, name=path)
        self.objects: dict[str, Object] | None = None
        self._client = client
        self._path = path
        self._changed = changed

    def run(self) -> None:
        """Begins again with all objects when the API server ends the answer, or is away."""
        while True:
            try:
                self._follow(self._list())
            except (httpx.HTTPError, KeyError):
                time.sleep(AGAIN_S)

    def _list(self) -> str:
        answer = self._client.get(self._path).raise_for_status().json()
        self.objects = {each["metadata"]["uid"]: each for each in answer["items"]}
        self._changed.set()
        return str(answer["metadata"]["resourceVersion"])

    def _follow(self, version: str) -> None:
        parameters = {"watch": "true", "resourceVersion": version}
        with self._client.stream("GET", self._path, params=parameters) as answer:
            for line in answer.raise_for_status().iter_lines():
                event = json.loads(line)
                # Of an error, such as a version that is too old, the object is no object of this kind.
                uid, objects = event["object"]["metadata"]["uid"], dict(self.objects or {})
                if event["type"] == "DELETED":
                    objects.pop(uid, None)
                else:
                    objects[uid] = event["object"]
                self.objects = objects
                self._changed.set()


class PolicyEnforcer:
    """Writes the rules anew whenever they are others."""

    def __init__(self, client: httpx.Client) -> None:
        """Asks nothing yet."""
        self._changed = Event()
        self._watches = {path: Watch(client, path, self._changed) for path in PATHS}
        self._rules = ""

    def run(self) -> None:
        """Goes on for ever. Raises subprocess.CalledProcessError when nft refuses the rules."""
        for watch in self._watches.values():
            watch.start()
        while True:
            self._changed.wait()
            time.sleep(TOGETHER_S)
            self._changed.clear()
            seen = {path: watch.objects for path, watch in self._watches.items()}
            if all(each is not None for each in seen.values()):
                self._apply({path: list((objects or {}).values()) for path, objects in seen.items()})

    def _apply(self, objects: dict[str, list[Object]]) -> None:
        labels = {each["metadata"]["name"]: each["metadata"].get("labels") or {} for each in objects[NAMESPACES]}
        rules = NetworkPolicies(labels, pods_of(objects[PODS]), objects[POLICIES]).ruleset()
        if rules != self._rules:
            subprocess.run(["nft", "-f", "-"], input=rules, text=True, check=True)
            self._rules = rules


def client_of(kubeconfig: Path) -> httpx.Client:
    """Returns a client of the API server with the node's kubeconfig; its watches never time out for silence."""
    content = json.loads(kubeconfig.read_text(encoding="utf-8"))
    cluster, user = content["clusters"][0]["cluster"], content["users"][0]["user"]
    tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
    tls.load_cert_chain(user["client-certificate"], user["client-key"])
    return httpx.Client(base_url=cluster["server"], verify=tls, timeout=httpx.Timeout(10, read=None), trust_env=False)


def main(arguments: Sequence[str]) -> None:
    """Runs until it is killed."""
    [kubeconfig] = arguments
    PolicyEnforcer(client_of(Path(kubeconfig))).run()


if __name__ == "__main__":
    main(sys.argv[1:])
