"""Decides which records of a batch change a store: those with a higher (epoch, sequence) than what it holds."""

from collections.abc import Sequence

from query_service.storage.store_keys import FENCE_SIZE

Replaced = tuple[bytes, bytes, bytes]


def newest_rows(
    keys: Sequence[bytes],
    values: Sequence[bytes],
    held: Sequence[bytes | None],
    replaced: list[Replaced] | None = None,
) -> tuple[dict[bytes, bytes], int]:
    """Returns the rows to write, by key, and the number of records that were stale.

    `values[i]` is the i-th record as `store_keys` lays it out, `held[i]` what the store holds for its key. The fence
    stands first in both, big-endian and unsigned, so that bytes compare as (epoch, sequence) does. `replaced` gets the
    key of each version that is replaced, the version, and what replaces it.
    """
    if not any(held):
        rows = dict(zip(keys, values, strict=True))
        if len(rows) == len(keys):
            return rows, 0
    rows = {}
    stale = 0
    for key, value, stored in zip(keys, values, held, strict=True):
        current = rows.get(key) or stored
        if current is None:
            rows[key] = value
        elif current[:FENCE_SIZE] >= value[:FENCE_SIZE]:
            stale += 1
        else:
            rows[key] = value
            if replaced is not None:
                replaced.append((key, current, value))
    return rows, stale
