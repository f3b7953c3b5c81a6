"""Names the headers of a dead letter, which stand beside those of the original record.

- `statecast-reason`: why it cannot be used, as text; one line per pipeline when they differ
- `statecast-topic`, `statecast-partition`, `statecast-offset`: where it stands, numbers as decimal text
- `statecast-pipelines`: the names of the pipelines that cannot use it, separated by commas
- `statecast-truncated`: only of a letter that the dead-letter topic would not take whole: how many bytes the value had.
  The letter has the first of them; key and headers too are missing when they alone fill half of the room

A record that was put back carries, in place of these,

- `statecast-replayed`: the dead letter that it comes from, as `topic/partition/offset`
"""

REASON = "statecast-reason"
TOPIC = "statecast-topic"
PARTITION = "statecast-partition"
OFFSET = "statecast-offset"
PIPELINES = "statecast-pipelines"
TRUNCATED = "statecast-truncated"
REPLAYED = "statecast-replayed"

OF_A_LETTER = frozenset({REASON, TOPIC, PARTITION, OFFSET, PIPELINES, TRUNCATED})

LONGEST_REASON = 1_000
"""Characters; what follows is left out."""
OWN_BYTES = 16_384
"""What these headers and Kafka's own fields take at most, with room to spare."""
