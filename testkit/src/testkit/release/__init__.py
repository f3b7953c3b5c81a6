"""Releases of parts: how one is made, and its record, which everything reads that needs the last release."""
