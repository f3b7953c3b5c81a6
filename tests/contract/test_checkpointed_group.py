"""The processor publishes checkpointed offsets where the query service reads them."""

from query_service.storage import topic_facts
from stream_processor.run import checkpointed


def test_both_services_name_the_same_group() -> None:
    assert topic_facts.CHECKPOINTED_GROUP == checkpointed.CHECKPOINTED_GROUP
