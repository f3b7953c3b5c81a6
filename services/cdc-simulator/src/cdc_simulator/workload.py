"""Decides what happens to the tables next; pure: the seed, the log sequence number and the tables decide alone."""

from collections.abc import Mapping
from random import Random

from cdc_simulator.basis import Basis, Moment
from cdc_simulator.domain import Domain, Rows
from cdc_simulator.mutation import Mutation


def next_mutation(
    domain: Domain, tables: Mapping[str, Rows], basis: Basis, log_sequence_number: int, now_us: int
) -> Mutation:
    """Returns the mutation with that log sequence number."""
    random = Random(f"{basis.seed}:{log_sequence_number}")  # noqa: S311  a game, no secret
    return domain.next_mutation(tables, Moment(random, basis, now_us))
