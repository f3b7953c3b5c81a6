"""Kafka's rule for topic names, for files and options that name topics."""

import re
from typing import Annotated

from pydantic import AfterValidator, WithJsonSchema

MAX_TOPIC_NAME = 249
TOPIC_NAME = rf"^(?!\.{{1,2}}$)[a-zA-Z0-9._-]{{1,{MAX_TOPIC_NAME}}}$"


def is_topic_name(text: str) -> bool:
    """Returns whether Kafka accepts the text as a topic's name."""
    return re.fullmatch(TOPIC_NAME, text) is not None


def _topic_name(text: str) -> str:
    if not is_topic_name(text):
        form = f"it has 1 to {MAX_TOPIC_NAME} letters, digits, dots, _ and -, and is not . or .."
        raise ValueError(f"{text!r} is no topic's name: {form}")
    return text


TopicName = Annotated[str, AfterValidator(_topic_name), WithJsonSchema({"type": "string", "pattern": TOPIC_NAME})]
