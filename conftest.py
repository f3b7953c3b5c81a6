"""Gives every test of the repository the fixtures and markers of the test kit."""

pytest_plugins = ["testkit.pytest_plugin"]
