"""Releases of parts: how one is made, and its record, from which other code reads the last release."""
