"""Gives every test of the repository the fixtures and markers of the test kit, and the modules that suites share."""

import sys
from pathlib import Path

SUITES = ("contract", "conformance", "e2e", "fuzz", "release", "upgrade")
SHARED = ("", *(f"tests/{suite}" for suite in SUITES), "infra/local/tests")

sys.path[:0] = [str(Path(__file__).parent / directory) for directory in SHARED]
pytest_plugins = ["testkit.pytest_plugin"]
