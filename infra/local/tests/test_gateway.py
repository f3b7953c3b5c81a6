"""The gateway of the local stack and its demo users."""

import stat
import subprocess
from pathlib import Path
from typing import Any

import pytest

from kong_envoy import envoy_command, load
from local_stack import LocalStackError
from local_stack import gateway as subject
from local_stack.gateway import KONG_FILE, authorization, configure_gateway, demo_users, staff_headers
from local_stack.settings import Settings
from local_stack.stack_file import Basic, Credentials


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    chosen = Settings(directory=tmp_path / "stack").with_ports()
    chosen.files.create()
    return chosen


def configure(settings: Settings) -> dict[str, Credentials]:
    return configure_gateway(settings, "the-secret-of-this-run")


def test_envoy_accepts_what_is_rendered_from_the_gateways_file(settings: Settings) -> None:
    configure(settings)

    validation = subprocess.run(
        [*envoy_command(settings.files.envoy_file), "--mode", "validate"], capture_output=True, text=True, check=False
    )
    assert validation.returncode == 0, validation.stderr


def test_the_secret_of_the_run_is_in_a_file_that_only_the_owner_reads(settings: Settings) -> None:
    configure(settings)

    config = settings.files.envoy_file
    assert "the-secret-of-this-run" in config.read_text()
    assert stat.S_IMODE(config.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("_format_version: '3.0'\nsurprise: true\n", "surprise"),
        ("consumers: [", "is not YAML"),
        (None, "cannot be read"),
    ],
)
def test_a_file_that_cannot_be_carried_over_is_refused_by_its_name(
    settings: Settings, monkeypatch: pytest.MonkeyPatch, tmp_path: Path, content: str | None, problem: str
) -> None:
    kong_file = tmp_path / "kong.yaml"
    if content is not None:
        kong_file.write_text(content)
    monkeypatch.setattr(subject, "KONG_FILE", kong_file)

    with pytest.raises(LocalStackError, match=f"{kong_file} cannot be rendered for Envoy: .*{problem}"):
        configure(settings)


def test_a_user_with_a_password_has_a_header() -> None:
    operator = Credentials(basic=Basic(username="operator", password="secret"))

    assert authorization(operator) == {"Authorization": "Basic b3BlcmF0b3I6c2VjcmV0"}
    assert authorization(Credentials()) == {}


def test_the_gateways_file_names_customers_and_staff(settings: Settings) -> None:
    users = configure(settings)

    alice = users["alice"]
    assert alice.customer_id == "customer-0001"
    assert alice.basic is not None
    assert alice.key is not None
    assert alice.jwt is not None
    assert any("staff" in user.groups and not user.customer_id for user in users.values())


def test_a_consumer_without_credentials_is_no_demo_user() -> None:
    assert "anonymous" not in demo_users(load(KONG_FILE))


def test_a_file_without_credentials_is_refused() -> None:
    document: dict[str, Any] = {"consumers": [{"username": "nobody"}]}

    with pytest.raises(LocalStackError, match=f"{KONG_FILE} names no consumer with credentials"):
        demo_users(document)


def test_a_file_without_a_staff_consumer_with_a_password_is_refused() -> None:
    users = {
        "alice": Credentials(basic=Basic(username="alice", password="secret")),
        "key": Credentials(groups=("staff",)),
    }

    with pytest.raises(LocalStackError, match=f"{KONG_FILE} names no consumer of the group staff with a password"):
        staff_headers(users)
