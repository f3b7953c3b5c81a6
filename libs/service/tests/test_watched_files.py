"""Files that change while a service runs."""

from collections.abc import Set
from pathlib import Path

from statecast_service.errors import ServiceError
from statecast_service.watched_files import FollowedFile, Settled, changes_of, content_of, state_of


def test_a_change_is_told_once_when_two_looks_see_the_same(tmp_path: Path) -> None:
    file = tmp_path / "stores.yaml"
    file.write_text("one")
    settled = Settled(lambda: content_of(file))

    assert [settled.news() for _ in range(3)] == [None, b"one", None]

    file.write_text("tw")
    assert settled.news() is None
    file.write_text("two")

    assert [settled.news() for _ in range(3)] == [None, b"two", None]


def test_what_changes_back_before_it_has_settled_is_no_news(tmp_path: Path) -> None:
    file = tmp_path / "stores.yaml"
    file.write_text("one")
    settled = Settled(lambda: content_of(file))
    settled.news(), settled.news()
    file.write_text("two")
    settled.news()
    file.write_text("one")

    assert [settled.news() for _ in range(3)] == [None, None, None]


def test_a_mounted_config_map_changes_by_its_link(tmp_path: Path) -> None:
    for version in ("1", "2"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "stores.yaml").write_text(version)
    (tmp_path / "..data").symlink_to("..1")
    file = tmp_path / "stores.yaml"
    file.symlink_to("..data/stores.yaml")
    settled = Settled(lambda: content_of(file))
    settled.news(), settled.news()
    (tmp_path / "..new").symlink_to("..2")
    (tmp_path / "..new").rename(tmp_path / "..data")

    assert [settled.news() for _ in range(2)] == [None, b"2"]


def test_a_file_that_cannot_be_read_is_news_too(tmp_path: Path) -> None:
    settled = Settled(lambda: content_of(tmp_path / "none"))

    assert [settled.news() for _ in range(2)] == [None, "No such file or directory"]


def test_a_directory_is_compared_by_its_files(tmp_path: Path) -> None:
    before = state_of(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "row.proto").write_text("message")

    assert before == state_of(None) == state_of(tmp_path / "none") == frozenset()
    assert len(state_of(tmp_path)) == 1


async def test_what_hinders_and_what_is_wrong_is_reported_until_it_has_passed(tmp_path: Path) -> None:
    file = tmp_path / "stores.yaml"
    taken: list[str] = []
    hindered: set[str] = set()
    reports: list[tuple[set[str], set[str]]] = []

    def read() -> str:
        text = file.read_text()
        if text == "wrong":
            raise ServiceError("it is wrong")
        return text

    def take(text: str) -> set[str]:
        taken.append(text)
        return set(hindered)

    def report(problems: Set[str], new: Set[str]) -> None:
        reports.append((set(problems), set(new)))

    followed = FollowedFile(changes_of(file, None, read), take, report, 1)

    async def reported(*, looks: int) -> list[tuple[set[str], set[str]]]:
        reports.clear()
        for _ in range(looks):
            await followed.look()
        return list(reports)

    file.write_text("one")
    hindered.add("busy")
    assert await reported(looks=3) == [(set(), set()), ({"busy"}, {"busy"}), ({"busy"}, set())]
    hindered.clear()
    assert await reported(looks=1) == [(set(), set())]

    file.write_text("wrong")
    wrong = {"all stays as it is: it is wrong"}
    assert await reported(looks=3) == [(set(), set()), (wrong, wrong), (wrong, set())]
    assert set(taken) == {"one"}
    file.write_text("two")
    assert (await reported(looks=2))[-1] == (set(), set())
    assert taken[-1] == "two"
