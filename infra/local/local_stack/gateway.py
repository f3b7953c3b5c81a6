"""The gateway of the local stack: a real Envoy that obeys the gateway's one file, infra/kong/kong.yaml."""

import base64
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from kong_envoy import envoy_command
from local_stack.certificates import Certificates
from local_stack.errors import LocalStackError
from local_stack.settings import PROGRAMS, ROOT, Settings
from local_stack.stack_file import Credentials

KONG_FILE = ROOT / "infra" / "kong" / "kong.yaml"
HOST = "127.0.0.1"


@dataclass(frozen=True)
class Gateway:
    """One Envoy. `settings` has a port for every server; `operator` may see the shard map."""

    directory: Path
    settings: Settings
    certificates: Certificates
    secret: str
    operator: Credentials

    @property
    def probe_url(self) -> str:
        """What the gateway answers with 200 when it lets staff through to an edge that is ready."""
        return f"http://{HOST}:{self.settings.gateway_http_port}/v1/shards"

    @property
    def probe_headers(self) -> Mapping[str, str]:
        """The credentials for `probe_url`."""
        return authorization(self.operator)

    def command(self) -> tuple[str, ...]:
        """The command that runs the gateway in the foreground."""
        return tuple(envoy_command(self._config))

    def prepare(self) -> None:
        """Renders Envoy's configuration. Raises LocalStackError when the file cannot be carried over."""
        ports = self.settings
        options = {
            "--listen-http": f"{HOST}:{ports.gateway_http_port}",
            "--listen-https": f"{HOST}:{ports.gateway_https_port}",
            "--admin": f"{HOST}:{ports.gateway_admin_port}",
            "-o": str(self._config),
        }
        targets = [f"ws-edge-{number}:8080={HOST}:{ports.edge_port(number)}" for number in (1, 2)]
        command = [str(PROGRAMS / "kong-envoy"), "render", str(KONG_FILE)]
        for option, value in (*options.items(), *(("--resolve", target) for target in targets)):
            command += [option, value]
        self._config.unlink(missing_ok=True)
        self._config.touch(mode=0o600)
        rendered = subprocess.run(
            command, env={**os.environ, **self._secrets()}, capture_output=True, text=True, check=False
        )
        if rendered.returncode != 0:
            raise LocalStackError(f"{KONG_FILE} cannot be rendered for Envoy: {rendered.stderr.strip()}")

    def _secrets(self) -> dict[str, str]:
        return {
            "GATEWAY_SECRET": self.secret,
            "GATEWAY_TLS_CERTIFICATE": self.certificates.certificate.read_text(),
            "GATEWAY_TLS_KEY": self.certificates.key.read_text(),
        }

    @property
    def _config(self) -> Path:
        return self.directory / "envoy.yaml"


def authorization(user: Credentials) -> dict[str, str]:
    """The header of basic authentication for the user."""
    if user.basic is None:
        return {}
    pair = f"{user.basic.username}:{user.basic.password}".encode()
    return {"Authorization": f"Basic {base64.b64encode(pair).decode()}"}
