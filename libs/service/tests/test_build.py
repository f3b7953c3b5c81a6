"""A program reports its build."""

from argparse import ArgumentParser
from importlib.metadata import version
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from statecast_service.build import Build, add_version
from statecast_service.health import register_build

CHASSIS, CONTRACT = version("statecast-service"), version("statecast-contract")


@pytest.fixture
def released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The package and metadata of a released distribution."""
    (tmp_path / "demo_service").mkdir()
    (tmp_path / "demo_service" / "__init__.py").touch()
    (tmp_path / "demo_service" / "commit.txt").write_text("0123abcd\n")
    (tmp_path / "demo_service-2.5.1.dist-info").mkdir()
    metadata = "Metadata-Version: 2.4\nName: demo-service\nVersion: 2.5.1\n"
    (tmp_path / "demo_service-2.5.1.dist-info" / "METADATA").write_text(metadata)
    monkeypatch.syspath_prepend(str(tmp_path))


@pytest.mark.usefixtures("released")
def test_version_shows_version_commit_and_contract(capsys: pytest.CaptureFixture[str]) -> None:
    parser = ArgumentParser(prog="demo")
    add_version(parser, "demo-service")
    with pytest.raises(SystemExit) as end:
        parser.parse_args(["--version"])

    assert end.value.code == 0
    assert capsys.readouterr().out == f"demo 2.5.1 (commit 0123abcd, contract {CONTRACT})\n"


@pytest.mark.usefixtures("released")
def test_the_metric_has_the_same_facts() -> None:
    registry = CollectorRegistry()
    register_build(registry, "demo-service")

    labels = {"version": "2.5.1", "commit": "0123abcd", "contract": CONTRACT}
    assert registry.get_sample_value("demo_service_build_info", labels) == 1


def test_the_commit_of_a_checkout_is_unknown() -> None:
    assert Build.of("statecast-service") == ("statecast-service", CHASSIS, "unknown", CONTRACT)


def test_a_program_that_is_no_distribution_has_no_version() -> None:
    assert Build.of("no-such-program") == ("no-such-program", "unknown", "unknown", CONTRACT)
