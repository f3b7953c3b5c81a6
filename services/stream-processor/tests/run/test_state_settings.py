"""The memory that a file gives to a pipeline's state, over its stores."""

from collections.abc import Callable

import pytest

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.plan import plan, topics_of
from stream_processor.run.queries import state_settings


def test_memory_is_divided_over_the_stores(shipped: Callable[..., Pipeline]) -> None:
    names = "orders-by-key", "rewards-by-customer"
    pipelines = [shipped(name, state={"memory": "64MiB"}) for name in names]
    plans = plan(pipelines, dict.fromkeys(topics_of(pipelines), 4))

    cached = {each.name: state_settings(each).get("blockCacheSizeMB") for each in plans}
    assert cached == {"orders-by-key": "16", "rewards-by-customer": "16"}


def test_without_the_key_it_is_shared(shipped: Callable[..., Pipeline]) -> None:
    pipeline = shipped("orders-by-key")

    assert state_settings(plan([pipeline], dict.fromkeys(topics_of([pipeline]), 4))[0]) == {}


def test_too_little_is_refused(shipped: Callable[..., Pipeline]) -> None:
    pipeline = shipped("rewards-by-customer", parallelism=2, state={"memory": "15MiB"})
    planned = plan([pipeline], dict.fromkeys(topics_of([pipeline]), 4))[0]

    with pytest.raises(PipelineFileError, match=r"state\.memory: is too little for 4 parts .* give 16MiB at least"):
        state_settings(planned)
