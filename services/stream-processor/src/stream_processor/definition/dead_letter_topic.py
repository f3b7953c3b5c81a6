"""Names the topic to which a source topic's dead letters go."""

SUFFIX = ".dead-letter"


def dead_letter_topic(source_topic: str) -> str:
    """The topic of a source topic's dead letters."""
    return source_topic + SUFFIX
