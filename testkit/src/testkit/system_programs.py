"""Programs that tests need from the packages of the system."""

import os
import shutil

import pytest

SEARCHED = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/usr/local/sbin"
"""Servers lie where the search path of a user without rights does not lead."""


def system_program(*names: str, package: str) -> str:
    """Returns where the first of these programs is that exists.

    Without any the test is skipped, but fails where CI is set: there it must not be missing.
    """
    path = next((path for name in names if (path := shutil.which(name, path=SEARCHED))), None)
    if path is None:
        missing = f"there is no {names[0]}: install the package {package}"
        if os.environ.get("CI") == "true":
            pytest.fail(missing)
        pytest.skip(missing)
    return path
