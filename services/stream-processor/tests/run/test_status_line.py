"""The last line of a terminal."""

import io

import pytest

from stream_processor.run.status_line import CLEAR, StatusLine, open_status_line


class Terminal(io.StringIO):
    """A stream that says it is a terminal."""

    def isatty(self) -> bool:
        return True


def test_it_is_rewritten_and_logs_go_above_it() -> None:
    terminal = Terminal()
    line = StatusLine(terminal)
    line.show("one")
    line.write("log\n")
    line.show("two")

    assert terminal.getvalue() == f"{CLEAR}one{CLEAR}log\none{CLEAR}two"


def test_it_is_cut_to_the_width(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "5")
    terminal = Terminal()

    StatusLine(terminal).show("123456789")

    assert terminal.getvalue() == f"{CLEAR}1234"


@pytest.mark.parametrize(
    ("stream", "environment", "there"),
    [(Terminal(), {}, True), (Terminal(), {"NO_COLOR": "1"}, False), (io.StringIO(), {}, False)],
)
def test_it_is_for_people_on_a_terminal(
    stream: io.StringIO, environment: dict[str, str], there: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.stderr", stream)

    assert (open_status_line(environment) is not None) == there
