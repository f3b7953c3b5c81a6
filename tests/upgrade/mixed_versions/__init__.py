"""Runs the last release of each part beside HEAD."""
