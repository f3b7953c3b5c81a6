"""The files that follow from domains, as `kafka-topics` and the query service read them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import groupby
from math import inf

import yaml

from statecast_domains.derivation import Derivation

_MADE = "# Made of the files of domains, and made anew with them: change those, and not this file."
_TOPICS = """\
# The topics. `kafka-topics FILE` creates what is missing and checks what exists.
# `access` is what each service needs of a topic where Kafka has ACLs: `kafka-topics --acls`.
# A keyed topic has as many partitions as its group's shards; the number can never change without a new topic.
"""
_STORES = """\
# The stores that the query service serves, and passes on to the edges. Staff see all rows of all stores.
#   keeps: one      one value per group (the default)
#          members  many per group, each with a sort value and a name
#   readers: staff                       nobody but staff (the default)
#            everyone                    all consumers
#            {field: F}                  the consumer whose id stands in the row's field F
#            {field: F, group: true}     the same, and the group of every key is that id as well
#   private:                              fields that not all who see a row see; staff do
#     - {path: hands, owner: player_id}   of a list, each element is for the consumer whose id stands in its field
#                                         player_id; of anything else, for the one whose id stands in the row's
"""


def topics_text(derivation: Derivation) -> str:
    """Returns the topics file."""
    return _file(_TOPICS, "topics", [(topic.about, _in_lines(topic.entry)) for topic in derivation.topics])


def stores_text(derivation: Derivation) -> str:
    """Returns the stores file."""
    entries = [(derivation.store_users[store.name], _in_lines(store.entry)) for store in derivation.stores]
    return _file(_STORES, "stores", entries)


def _file(head: str, key: str, entries: Sequence[tuple[str, str]]) -> str:
    parts = [
        f"  # {about}\n" + "".join(entry for _, entry in group)
        for about, group in groupby(entries, key=lambda each: each[0])
    ]
    return f"{_MADE}\n{head}{key}:\n" + "\n".join(parts) if parts else f"{_MADE}\n{head}{key}: []\n"


def _in_lines(entry: Mapping[str, object]) -> str:
    """Returns the entry, a line for each key."""
    return "".join(_lines(entry))


def _lines(entry: Mapping[str, object]) -> Iterator[str]:
    begin = "  - "
    for key, value in entry.items():
        yield f"{begin}{_flow({key: value})[1:-1]}\n"
        begin = "    "


def _flow(value: Mapping[str, object]) -> str:
    return yaml.safe_dump(dict(value), default_flow_style=True, width=inf, sort_keys=False, allow_unicode=True).strip()
