"""The command."""

import os
import socket
import subprocess
import sys
from pathlib import Path


def local_stack(*arguments: str, **settings: object) -> subprocess.CompletedProcess[str]:
    environment = {f"LOCAL_STACK_{name.upper()}": str(value) for name, value in settings.items()}
    command = [sys.executable, "-m", "local_stack", *arguments]
    return subprocess.run(command, env={**os.environ, **environment}, capture_output=True, text=True, check=False)


def test_a_bad_setting_is_one_line_that_names_it(tmp_path: Path) -> None:
    result = local_stack("up", directory=tmp_path, replicas="three")

    assert result.returncode == 2
    assert result.stderr.startswith("local-stack: LOCAL_STACK_REPLICAS='three': ")
    assert result.stderr.count("\n") == 1


def test_a_port_in_use_is_named_with_its_setting(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        result = local_stack("up", directory=tmp_path, gateway_https_port=port)

    assert result.returncode == 1
    assert result.stderr.startswith(f"local-stack: port {port} is in use: ")
    assert "LOCAL_STACK_GATEWAY_HTTPS_PORT" in result.stderr
    assert "Traceback" not in result.stderr


def test_a_directory_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").touch()

    result = local_stack("up", directory=tmp_path / "file" / "stack")

    assert result.returncode == 1
    assert result.stderr.startswith(f"local-stack: cannot write to {tmp_path / 'file' / 'stack'}")


def test_ending_nothing_says_so_and_is_no_error(tmp_path: Path) -> None:
    result = local_stack("down", directory=tmp_path)

    assert (result.returncode, result.stderr) == (0, "")
    assert "nothing runs in" in result.stdout


def test_wiping_removes_the_data_and_leaves_the_logs(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "orders.sqlite").touch()
    (tmp_path / "logs").mkdir()

    result = local_stack("down", "--wipe", directory=tmp_path)

    assert result.returncode == 0
    assert not (tmp_path / "data").exists()
    assert (tmp_path / "logs").exists()


def test_the_status_of_nothing_is_3(tmp_path: Path) -> None:
    result = local_stack("status", directory=tmp_path)

    assert result.returncode == 3
    assert "nothing runs in" in result.stdout


def test_an_unknown_command_is_refused_with_the_known_ones() -> None:
    result = local_stack("upp")

    assert result.returncode == 2
    assert all(command in result.stderr for command in ("up", "down", "status", "demo", "run"))
