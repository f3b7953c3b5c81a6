"""The memory that a file gives to a pipeline's state, over its stores."""

import pytest

from statecast_domains.errors import PipelineFileError
from stream_processor.pipeline.pipeline import Pipeline
from stream_processor.run.plan import plan, topics_of
from stream_processor.run.queries import state_settings
from testkit.stream_processor.micro_batches import PipelineOf


def settings_of(pipeline: Pipeline) -> dict[str, str]:
    [planned] = plan([pipeline], dict.fromkeys(topics_of([pipeline]), 4))
    return dict(state_settings(planned))


@pytest.mark.parametrize("name", ["orders-by-key", "rewards-by-customer"])
def test_memory_is_divided_over_the_stores_and_shared_without_the_key(shipped: PipelineOf, name: str) -> None:
    assert settings_of(shipped(name, state={"memory": "64MiB"}))["blockCacheSizeMB"] == "16"
    assert settings_of(shipped(name)) == {}


def test_too_little_is_refused(shipped: PipelineOf) -> None:
    with pytest.raises(PipelineFileError, match=r"state\.memory: is too little for 4 parts .* give 16MiB at least"):
        settings_of(shipped("rewards-by-customer", parallelism=2, state={"memory": "15MiB"}))
