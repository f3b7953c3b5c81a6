"""The gateway of the local stack and its demo users."""

import stat
import subprocess
from datetime import UTC, datetime
from pathlib import Path

import pytest

from kong_envoy import envoy_command
from local_stack import LocalStackError
from local_stack import gateway as subject
from local_stack.gateway import KONG_FILE, authorization, read_demo_users, render_gateway
from local_stack.settings import Settings, assign_ports
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import Basic, Credentials
from testkit.certificates import Certificates


@pytest.fixture
def directory(tmp_path: Path) -> StackDirectory:
    directory = StackDirectory(tmp_path)
    directory.create()
    Certificates(directory.tls).ensure(datetime.now(UTC))
    return directory


def prepare(directory: StackDirectory) -> None:
    settings = Settings()
    ports = settings.model_copy(update=assign_ports(settings))
    render_gateway(directory, ports, "the-secret-of-this-run")


def test_envoy_accepts_what_is_rendered_from_the_gateways_file(directory: StackDirectory) -> None:
    prepare(directory)

    validation = subprocess.run(
        [*envoy_command(directory.envoy_file), "--mode", "validate"], capture_output=True, text=True, check=False
    )
    assert validation.returncode == 0, validation.stderr


def test_the_secret_of_the_run_is_in_a_file_that_only_the_owner_reads(directory: StackDirectory) -> None:
    prepare(directory)

    config = directory.envoy_file
    assert "the-secret-of-this-run" in config.read_text()
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


def test_a_file_that_cannot_be_carried_over_is_refused(
    directory: StackDirectory, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "kong.yaml").write_text("_format_version: '3.0'\nsurprise: true\n")
    monkeypatch.setattr(subject, "KONG_FILE", tmp_path / "kong.yaml")

    with pytest.raises(LocalStackError, match=r"cannot be rendered for Envoy: .*surprise"):
        prepare(directory)


def test_a_user_with_a_password_has_a_header() -> None:
    operator = Credentials(basic=Basic(username="operator", password="secret"))

    assert authorization(operator) == {"Authorization": "Basic b3BlcmF0b3I6c2VjcmV0"}
    assert authorization(Credentials()) == {}


def test_the_gateways_file_names_customers_and_staff() -> None:
    users = read_demo_users(KONG_FILE)

    alice = users["alice"]
    assert alice.customer_id == "customer-0001"
    assert alice.basic is not None
    assert alice.key is not None
    assert alice.jwt is not None
    assert any("staff" in user.groups and not user.customer_id for user in users.values())


def test_a_consumer_without_credentials_is_no_demo_user() -> None:
    assert "anonymous" not in read_demo_users(KONG_FILE)


def test_a_file_without_credentials_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "kong.yaml"
    empty.write_text("consumers: [{username: nobody}]")

    with pytest.raises(LocalStackError, match="no consumer with credentials"):
        read_demo_users(empty)
