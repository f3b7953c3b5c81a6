"""Writes the files of the node's programs: certificates, and a settings file for each program that takes one."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import trustme
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import rsa

NODE = "node-1"
NODE_ADDRESS = "10.77.0.1"
HOST_ADDRESS = "10.77.0.254"
"""This machine's end of the only link that leads to the node."""
BALANCER_NETWORK = "10.77.1.0/24"
BALANCER_ADDRESS = "10.77.1.1"
"""The address of Services of the type LoadBalancer."""
POD_NETWORK = "10.244.0.0/24"
SERVICE_NETWORK = "10.96.0.0/16"
API_SERVICE = "10.96.0.1"
DNS_SERVICE = "10.96.0.10"
API_PORT = 6443
CGROUP = "statecast-node"
"""The cgroup of all pods: nothing else on this machine uses it, so that it can be removed."""
CNI_PROGRAMS = Path("/usr/lib/cni")
CONTAINERD_SOCKET = "containerd.sock"
PAUSE_IMAGE = "statecast-node/pause:1"

CONTAINERD = """version = 2
root = "{directory}/containerd"
state = "/run/containerd"
[grpc]
  address = "{directory}/{socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "{directory}/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "{pause}"
  # Not every machine lets root lower these.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "{cni}"
    conf_dir = "{directory}/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd]
    snapshotter = "overlayfs"
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
      runtime_type = "io.containerd.runc.v2"
      [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
        SystemdCgroup = false
"""


@dataclass(frozen=True)
class NodeFiles:
    """The node's files below a directory that is new with each node."""

    directory: Path

    @property
    def kubeconfig(self) -> Path:
        """The kubeconfig of an administrator of the API server."""
        return self.directory / "kubeconfig"

    @property
    def containerd_socket(self) -> Path:
        """The socket of containerd; this machine's programs can reach it too."""
        return self.directory / CONTAINERD_SOCKET

    @property
    def log(self) -> Path:
        """A file for each program."""
        return self.directory / "log"

    def pem(self, name: str) -> Path:
        """Returns a certificate or a private key."""
        return self.directory / f"{name}.pem"

    def write(self) -> None:
        """Writes all of them, with certificates of their own."""
        for name in ("cni", "log"):
            (self.directory / name).mkdir(parents=True)
        self._write_certificates()
        values = {"directory": self.directory, "socket": CONTAINERD_SOCKET, "pause": PAUSE_IMAGE, "cni": CNI_PROGRAMS}
        (self.directory / "containerd.toml").write_text(CONTAINERD.format(**values))
        (self.directory / "resolv.conf").write_text("nameserver 127.0.0.1\n")
        # All of these are YAML files, of which JSON is a part.
        for name, content in {
            "kubeconfig": self._kubeconfig(),
            "kubelet.yaml": self._kubelet(),
            "kube-proxy.yaml": self._proxy(),
            "cni/pods.conflist": self._pod_network(),
        }.items():
            (self.directory / name).write_text(json.dumps(content, indent=1))

    def _write_certificates(self) -> None:
        authority = trustme.CA(organization_name="Statecast test node")
        names = ("kubernetes.default.svc", "kubernetes.default", "kubernetes", "localhost")
        issued = {
            "api-server": authority.issue_cert(*names, NODE_ADDRESS, API_SERVICE, "127.0.0.1"),
            # The group that may do everything; each program of the node is one user.
            "admin": authority.issue_cert("admin", common_name="admin", organization_name="system:masters"),
        }
        authority.cert_pem.write_to_path(str(self.pem("ca")))
        for name, each in issued.items():
            each.cert_chain_pems[0].write_to_path(str(self.pem(name)))
            self._write_key(f"{name}-key", each.private_key_pem.bytes())
        tokens = rsa.generate_private_key(public_exponent=65537, key_size=2048)
        form = serialization.PrivateFormat.TraditionalOpenSSL
        encoded = tokens.private_bytes(serialization.Encoding.PEM, form, serialization.NoEncryption())
        self._write_key("service-accounts-key", encoded)

    def _write_key(self, name: str, pem: bytes) -> None:
        self.pem(name).touch(mode=0o600)
        self.pem(name).write_bytes(pem)

    def _kubeconfig(self) -> dict[str, Any]:
        server = {"server": f"https://{NODE_ADDRESS}:{API_PORT}", "certificate-authority": str(self.pem("ca"))}
        user = {"client-certificate": str(self.pem("admin")), "client-key": str(self.pem("admin-key"))}
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "clusters": [{"name": "node", "cluster": server}],
            "users": [{"name": "admin", "user": user}],
            "contexts": [{"name": "node", "context": {"cluster": "node", "user": "admin"}}],
            "current-context": "node",
        }

    def _kubelet(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubelet.config.k8s.io/v1beta1",
            "kind": "KubeletConfiguration",
            "failCgroupV1": False,
            "cgroupDriver": "cgroupfs",
            "cgroupRoot": f"/{CGROUP}",
            "containerRuntimeEndpoint": f"unix://{self.containerd_socket}",
            "authentication": {
                "anonymous": {"enabled": False},
                "webhook": {"enabled": False},
                "x509": {"clientCAFile": str(self.pem("ca"))},
            },
            "authorization": {"mode": "AlwaysAllow"},
            "clusterDNS": [DNS_SERVICE],
            "clusterDomain": "cluster.local",
            "resolvConf": str(self.directory / "resolv.conf"),
            "podLogsDir": str(self.directory / "pod-logs"),
            "failSwapOn": False,
            "oomScoreAdj": 0,
            # The images cannot be pulled again.
            "imageGCHighThresholdPercent": 100,
            "imageGCLowThresholdPercent": 99,
            "evictionHard": {"memory.available": "100Mi", "nodefs.available": "1%", "imagefs.available": "1%"},
        }

    def _proxy(self) -> dict[str, Any]:
        return {
            "apiVersion": "kubeproxy.config.k8s.io/v1alpha1",
            "kind": "KubeProxyConfiguration",
            "mode": "nftables",
            "hostnameOverride": NODE,
            "clientConnection": {"kubeconfig": str(self.kubeconfig)},
            "clusterCIDR": POD_NETWORK,
            "oomScoreAdj": 0,
            # The limits of the whole machine stay as they are.
            "conntrack": {"maxPerCore": 0, "min": 0, "tcpEstablishedTimeout": "0s", "tcpCloseWaitTimeout": "0s"},
        }

    def _pod_network(self) -> dict[str, Any]:
        addresses = {
            "type": "host-local",
            "dataDir": str(self.directory / "pod-addresses"),
            "subnet": POD_NETWORK,
            "routes": [{"dst": "0.0.0.0/0"}],
        }
        return {"cniVersion": "1.0.0", "name": "pods", "plugins": [{"type": "ptp", "ipam": addresses}]}
