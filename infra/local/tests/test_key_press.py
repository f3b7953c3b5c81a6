"""Waiting for a key."""

import asyncio
import io
import os
import pty
import termios

import pytest

from local_stack.key_press import key_pressed


async def test_any_key_sets_the_event_and_the_terminal_is_as_before(monkeypatch: pytest.MonkeyPatch) -> None:
    keyboard, terminal = pty.openpty()
    before = termios.tcgetattr(terminal)
    with os.fdopen(keyboard, "wb", buffering=0) as keys, os.fdopen(terminal) as stdin:
        monkeypatch.setattr("sys.stdin", stdin)
        with key_pressed() as pressed:
            was_set = pressed.is_set()
            keys.write(b"x")
            async with asyncio.timeout(30):
                await pressed.wait()

        assert not was_set
        assert termios.tcgetattr(terminal) == before


async def test_without_a_terminal_no_key_is_pressed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.StringIO("x"))

    with key_pressed() as pressed:
        assert not pressed.is_set()
