"""Keys that stand in other partitions than their store's partitioner gives to them: which, and where they would fit."""

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass

from query_service.storage.store_keys import MAX_MISPLACED
from query_service.storage.stores_file import StoreDefinition
from statecast.partitioning import PARTITIONERS, count_matches, group_of, partition_of

_MIN_TELLING = 8
"""With so many keys, a partitioner hardly ever seems to fit by chance alone."""
_MAX_TELLING = 200
"""So many keys tell it. A store may have a hundred for each partition, and those hold up all calls."""
_FITTING_SHARE = 0.95

MisplacedAt = Mapping[tuple[str, int, int], Collection[str]]
"""The misplaced groups of a store's partition, with the epoch of its topic."""


@dataclass(frozen=True)
class Misplaced:
    """The groups of a store that are not looked up, all of them when `everything` is true, and why.

    `fit` is the part of the reason that says where they would fit; empty while they are too few to tell.
    """

    groups: frozenset[str]
    everything: bool
    reason: str
    fit: str

    def concerns(self, group: str) -> bool:
        return self.everything or group in self.groups


def groups_of(keys: Iterable[bytes]) -> list[str]:
    """Returns the groups of row keys, each once and sorted."""
    return sorted({group_of(key).decode() for key in keys})


def misplaced_of(definition: StoreDefinition, partitions: int, places: Mapping[int, Collection[str]]) -> Misplaced:
    """Returns the misplaced groups of a store, which are given by the partition in which they stand."""
    groups = frozenset(group for each in places.values() for group in each)
    everything = any(len(each) >= MAX_MISPLACED for each in places.values())
    subject = "its keys are" if everything else f"{len(groups)} of its keys are"
    text = f"{subject} not in the partitions that `{definition.partitioner}` gives to them"
    standing = sorted((group, at) for at, each in places.items() for group in each)
    if len(standing) >= _MIN_TELLING:
        fit = _fit(definition, partitions, standing[:: -(-len(standing) // _MAX_TELLING)])
        return Misplaced(groups, everything, f"{text}{fit}", fit)
    some = ", ".join(f"{group!r} in {at}" for group, at in standing[:3])
    todo = "write them with it, and delete those that are elsewhere by a record without a value there"
    return Misplaced(groups, everything, f"{text} ({some}): {todo}", "")


def _fit(definition: StoreDefinition, partitions: int, places: list[tuple[str, int]]) -> str:
    enough = _FITTING_SHARE * len(places)
    for partitioner, matches in count_matches(places, partitions).items():
        if matches >= enough:
            todo = f"set `partitioner: {partitioner}` in its store, if all its producers have that"
            todo = todo if definition.plain else "producers of keyed topics must have murmur2"
            return f", but where `{partitioner}` puts them: {todo}"
    hash_group = PARTITIONERS[definition.partitioner]
    for fewer in range(partitions - 1, 0, -1):  # keys that are all in partition 0 fit one partition, too
        if sum(partition_of(group, fewer, hash_group) == at for group, at in places) >= enough:
            todo = "make a new topic instead" if definition.plain else "begin a new generation of its pipeline"
            return f", but where {fewer} partitions put them: the topic was given more; {todo}"
    return ": no partitioner that is known puts them there; write them with it to a new topic"
