"""A finding of a check: one line that names a thing and the remedy."""

from dataclasses import dataclass
from typing import Literal

Level = Literal["FAIL", "WARN", "ok"]


@dataclass(frozen=True)
class Finding:
    """FAIL will not work; WARN works until something happens, which the text says; ok was looked at and is right."""

    level: Level
    subject: str
    text: str

    def __str__(self) -> str:
        line = f"{self.level:<4}  {self.subject}: {' '.join(self.text.split())}"
        return line.encode(errors="replace").decode()  # JSON can escape half of a character, and no terminal takes it


def fail(subject: str, text: str) -> Finding:
    return Finding("FAIL", subject, text)


def warn(subject: str, text: str) -> Finding:
    return Finding("WARN", subject, text)


def ok(subject: str, text: str) -> Finding:
    return Finding("ok", subject, text)
