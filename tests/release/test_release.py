"""A release makes a wheel, a bill of materials, a section of the changelog, a tag and a record, or nothing at all."""

import json
import subprocess
import zipfile
from pathlib import Path

import pytest

from testkit.release import artifacts
from testkit.release.__main__ import release
from testkit.release.environments import last_environment
from testkit.release.part_files import ReleaseError
from testkit.release.record import last_release, read_record

DAY = "2026-11-27"
PROJECT = """\
[build-system]
requires = ["setuptools"]
build-backend = "setuptools.build_meta"

[project]
name = "demo"
version = "0.1.0"
dependencies = []

[tool.setuptools.packages.find]
where = ["src"]

[tool.setuptools.package-data]
demo = ["commit.txt"]
"""
READER = '[project]\nname = "reader"\nversion = "1.0"\ndependencies = ["demo>=0.1,<0.3"]\n'


def git(directory: Path, *arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=directory, capture_output=True, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A repository with the parts demo and reader."""
    monkeypatch.setenv("PIP_NO_BUILD_ISOLATION", "0")  # pip reads this as: build with the setuptools that are here
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")
    files = {
        ".gitattributes": "commit.txt export-subst\n",
        ".gitignore": "/dist/\n",
        "services/demo/pyproject.toml": PROJECT,
        "services/demo/CHANGELOG.md": "# Changelog\n\n## [Unreleased]\n\n- It greets.\n",
        "services/demo/src/demo/__init__.py": "",
        "services/demo/src/demo/commit.txt": "$Format:%H$\n",
        "services/reader/pyproject.toml": READER,
    }
    root = tmp_path / "repository"
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    git(root, "init", "-q")
    git(root, "add", "-A")
    git(root, "commit", "-q", "-m", "Begin")
    return root


@pytest.fixture
def demo(repository: Path) -> Path:
    return repository / "services" / "demo"


def state_of(repository: Path) -> tuple[str, ...]:
    return (git(repository, "rev-parse", "HEAD"), git(repository, "tag"), git(repository, "status", "--porcelain"))


def test_a_release_has_wheel_bill_section_tag_and_record(repository: Path, demo: Path) -> None:
    directory = release(demo, "0.2.0", DAY)
    record = read_record(directory)
    wheel, bill = (repository / "dist" / name for name in record.files)
    with zipfile.ZipFile(wheel) as archive:
        commit = archive.read("demo/commit.txt").decode().strip()

    assert directory == last_release(repository / "releases", "demo") == repository / "releases/demo/0.2.0"
    assert (record.part, record.version, record.contract) == ("demo", "0.2.0", None)
    assert record.commit == commit == git(repository, "rev-parse", "demo/0.2.0")
    assert record.files == {each.name: artifacts.digest(each) for each in (wheel, bill)}
    assert json.loads(bill.read_text())["metadata"]["component"]["purl"] == "pkg:pypi/demo@0.2.0"
    assert (
        demo / "CHANGELOG.md"
    ).read_text() == f"# Changelog\n\n## [Unreleased]\n\n## [0.2.0] - {DAY}\n\n- It greets.\n"
    assert git(repository, "status", "--porcelain") == ""


def test_the_same_commit_gives_the_same_wheel(repository: Path, demo: Path, tmp_path: Path) -> None:
    prefix, commit = "services/demo", git(repository, "rev-parse", "HEAD")
    wheels = [
        artifacts.build_wheel(repository, prefix, commit, tmp_path / name, tmp_path / f"{name}-dist")
        for name in ("first", "second")
    ]

    assert len({artifacts.digest(wheel) for wheel in wheels}) == 1


@pytest.mark.parametrize(
    ("version", "text"),
    [
        ("latest", "VERSION=latest is no version such as 0.2.0"),
        ("v0.2.0", "VERSION=v0.2.0 is no version such as 0.2.0"),
        ("0.2", "VERSION=0.2 is no version such as 0.2.0"),
        ("0.2.0rc1", "VERSION=0.2.0rc1 is no version such as 0.2.0"),
        ("0.2.0+local", "VERSION=0.2.0+local is no version such as 0.2.0"),
        ("0.0.9", "VERSION=0.0.9 is lower than 0.1.0 of demo"),
        ("0.3.0", "reader speaks demo<0.3,>=0.1, without 0.3.0: try it, and widen the range first"),
    ],
)
def test_a_version_that_cannot_be_is_refused(repository: Path, demo: Path, version: str, text: str) -> None:
    before = state_of(repository)
    with pytest.raises(ReleaseError) as refusal:
        release(demo, version, DAY)

    assert str(refusal.value) == text
    assert state_of(repository) == before


def test_a_version_that_is_recorded_is_refused_without_its_tag_too(repository: Path, demo: Path) -> None:
    release(demo, "0.2.0", DAY)
    git(repository, "tag", "--delete", "demo/0.2.0")
    changelog = demo / "CHANGELOG.md"
    changelog.write_text(changelog.read_text().replace("## [Unreleased]\n", "## [Unreleased]\n\n- It waves.\n"))
    git(repository, "commit", "-qam", "Go on")
    before = state_of(repository)
    with pytest.raises(ReleaseError, match=r"demo 0\.2\.0 is recorded: choose another VERSION"):
        release(demo, "0.2.0", DAY)

    assert state_of(repository) == before


def test_a_folder_that_is_no_part_is_refused(repository: Path) -> None:
    with pytest.raises(ReleaseError, match=r"services has no pyproject\.toml, so it is no part"):
        release(repository / "services", "0.2.0", DAY)


def test_a_release_without_an_entry_in_the_changelog_is_refused(repository: Path, demo: Path) -> None:
    (demo / "CHANGELOG.md").write_text("# Changelog\n\n## [Unreleased]\n\n## [0.1.0] - 2026-01-01\n\n- It is there.\n")
    git(repository, "commit", "-qam", "Write nothing")
    with pytest.raises(ReleaseError, match=r"CHANGELOG.md has nothing under Unreleased"):
        release(demo, "0.2.0", DAY)


def test_changes_that_are_not_committed_are_refused(demo: Path) -> None:
    (demo / "src/demo/__init__.py").write_text("greeting = 'hello'\n")
    with pytest.raises(ReleaseError, match="files are changed and not committed: commit them first"):
        release(demo, "0.2.0", DAY)


def test_a_release_that_fails_leaves_the_repository_as_it_was(repository: Path, demo: Path) -> None:
    (demo / "pyproject.toml").write_text(PROJECT.replace("src", "nowhere"))
    git(repository, "commit", "-qam", "Lose the sources")
    before = state_of(repository)
    with pytest.raises(ReleaseError, match="pip wheel"):
        release(demo, "0.2.0", DAY)

    assert state_of(repository) == before


def test_a_chart_gets_the_version_of_the_release(repository: Path, demo: Path) -> None:
    chart = demo / "chart" / "Chart.yaml"
    chart.parent.mkdir()
    chart.write_text('name: demo\nversion: 0.1.0\nappVersion: 0.1.0\nkubeVersion: ">=1.32.0-0"\n')
    git(repository, "add", "-A")
    git(repository, "commit", "-q", "-m", "Add a chart")
    release(demo, "0.2.0", DAY)

    assert chart.read_text() == 'name: demo\nversion: 0.2.0\nappVersion: 0.2.0\nkubeVersion: ">=1.32.0-0"\n'


def test_a_recorded_release_is_installed_as_it_was(repository: Path, demo: Path, tmp_path: Path) -> None:
    release(demo, "0.2.0", DAY)
    (demo / "src/demo/__init__.py").write_text("later = True\n")
    git(repository, "commit", "-qam", "Go on")
    made = last_environment(repository, "demo", tmp_path / "cache")
    asked = "import demo; from importlib.metadata import version; print(version('demo'), hasattr(demo, 'later'))"
    answer = subprocess.run([made.programs / "python", "-c", asked], capture_output=True, text=True, check=True).stdout

    assert answer.split() == ["0.2.0", "False"]


@pytest.mark.parametrize(
    ("before", "after", "problem"),
    [
        ('"commit": "', '"commit": "0', "which is not here: fetch the history"),
        ('.whl": "', '.whl": "0', "is not the wheel that its record names"),
    ],
)
def test_a_release_that_is_not_as_recorded_is_refused(
    repository: Path, demo: Path, tmp_path: Path, before: str, after: str, problem: str
) -> None:
    record = release(demo, "0.2.0", DAY) / "record.json"
    record.write_text(record.read_text().replace(before, after))
    with pytest.raises(ReleaseError, match=problem):
        last_environment(repository, "demo", tmp_path / "cache")


def test_a_part_without_a_release_has_no_environment(repository: Path, tmp_path: Path) -> None:
    with pytest.raises(ReleaseError, match="reader has no recorded release"):
        last_environment(repository, "reader", tmp_path / "cache")
