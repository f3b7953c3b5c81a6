"""The gateway of the local stack."""

import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from local_stack import gateway as subject
from local_stack.certificates import Certificates
from local_stack.errors import LocalStackError
from local_stack.gateway import Gateway
from local_stack.ports import assign_ports
from local_stack.settings import Settings
from local_stack.stack_file import Basic, Credentials


@pytest.fixture
def gateway(tmp_path: Path) -> Gateway:
    certificates = Certificates(tmp_path)
    certificates.ensure(datetime.now(UTC))
    settings = Settings()
    operator = Credentials(basic=Basic(username="operator", password="secret"))
    ports = settings.model_copy(update=assign_ports(settings))
    return Gateway(tmp_path, ports, certificates, "the-secret-of-this-run", operator)


def test_envoy_accepts_what_is_rendered_from_the_gateways_file(gateway: Gateway) -> None:
    gateway.prepare()

    validation = subprocess.run([*gateway.command(), "--mode", "validate"], capture_output=True, text=True, check=False)
    assert validation.returncode == 0, validation.stderr


def test_the_secret_of_the_run_is_in_a_file_that_only_the_owner_reads(gateway: Gateway) -> None:
    gateway.prepare()

    config = gateway.directory / "envoy.yaml"
    assert "the-secret-of-this-run" in config.read_text()
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_carried_over_is_refused(
    gateway: Gateway, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kong.yaml").write_text("_format_version: '3.0'\nsurprise: true\n")
    monkeypatch.setattr(subject, "KONG_FILE", tmp_path / "kong.yaml")

    with pytest.raises(LocalStackError, match=r"cannot be rendered for Envoy: .*surprise"):
        gateway.prepare()


def test_staff_credentials_open_the_probe(gateway: Gateway) -> None:
    assert gateway.probe_headers == {"Authorization": "Basic b3BlcmF0b3I6c2VjcmV0"}
    assert gateway.probe_url.endswith(f":{gateway.settings.gateway_http_port}/v1/shards")
