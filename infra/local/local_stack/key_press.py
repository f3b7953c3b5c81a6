"""Waits for a key on a terminal."""

import asyncio
import sys
import termios
import tty
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def key_pressed() -> Iterator[asyncio.Event]:
    """An event that is set once any key is pressed; without a terminal to read from it never is."""
    pressed = asyncio.Event()
    if not sys.stdin.isatty():
        yield pressed
        return
    descriptor = sys.stdin.fileno()
    before = termios.tcgetattr(descriptor)
    tty.setcbreak(descriptor)
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, pressed.set)
    try:
        yield pressed
    finally:
        loop.remove_reader(descriptor)
        termios.tcflush(descriptor, termios.TCIFLUSH)
        termios.tcsetattr(descriptor, termios.TCSADRAIN, before)
