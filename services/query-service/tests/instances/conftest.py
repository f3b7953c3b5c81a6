"""Starts real instances as processes, on a topic of their own."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from testkit.pytest_plugin import CreateTopic
from testkit.query_instances import MakeScene, Scene


@pytest.fixture
async def scene(kafka: str, create_topic: CreateTopic, tmp_path: Path) -> AsyncIterator[Scene]:
    """A topic, and instances that the test launches."""
    scene = Scene(kafka, create_topic("rows", partitions=4, cleanup_policy="compact"), tmp_path)
    yield scene
    await scene.close()


@pytest.fixture
def make_scene(kafka: str, tmp_path: Path) -> MakeScene:
    """Makes a scene of a topic and the text of a stores file; the test closes it."""
    return lambda topic, stores: Scene(kafka, topic, tmp_path, stores)
