"""The command kong-envoy."""

import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from kong_envoy.__main__ import main

KONG_FILE = Path(__file__).resolve().parents[1] / "kong.yaml"
RENDER = ["render", str(KONG_FILE), "--listen-http", "127.0.0.1:18000"]


def test_the_file_is_written_for_its_owner_alone(tmp_path: Path) -> None:
    output = tmp_path / "envoy.yaml"
    output.touch(0o644)
    main([*RENDER, "--resolve", "ws-edge:8080=127.0.0.1:1", "-o", str(output)])

    assert output.stat().st_mode & 0o777 == 0o600
    assert "static_resources" in yaml.safe_load(output.read_text())


def test_without_a_file_the_configuration_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    main(RENDER)

    assert "static_resources" in yaml.safe_load(capsys.readouterr().out)


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ([*RENDER, "--listen-https", "127.0.0.1:1"], "set the environment variable GATEWAY_TLS_CERTIFICATE"),
        (["render", "nowhere.yaml", "--listen-http", "127.0.0.1:1"], "nowhere.yaml cannot be read"),
        (["render", str(KONG_FILE), "--listen-http", "0.0.0.0:1"], "not of this machine"),
        ([*RENDER, "--resolve", "ws-edge"], "must have the form host:port"),
        ([*RENDER, "-o", "/nowhere/envoy.yaml"], "cannot be written"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(arguments: list[str], said: str) -> None:
    command = [sys.executable, "-m", "kong_envoy", *arguments]
    ended = subprocess.run(command, check=False, capture_output=True, text=True, env={})

    assert ended.returncode == 1
    assert said in ended.stderr
    assert ended.stderr.startswith("kong-envoy: ")
    assert ended.stderr.count("\n") == 1
