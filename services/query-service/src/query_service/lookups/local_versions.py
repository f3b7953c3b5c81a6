"""Reads the versions of one key from one partition."""

from google.protobuf.timestamp_pb2 import Timestamp

from query_service.errors import BeforeHistoryError, NoHistoryError
from query_service.lookups import version_token
from query_service.lookups.answers import fill_version
from query_service.lookups.local_scan import PAGE_BYTES
from query_service.storage.partition_host import PartitionHost
from query_service.storage.store_definition import StoreDefinition
from query_service.storage.store_keys import UNTIMED, header_of, offset_of, row_key
from statecast.query.v1 import query_service_pb2 as query


def check_history(definition: StoreDefinition) -> None:
    """Raises NoHistoryError when the store keeps no older versions."""
    if definition.history is None:
        raise NoHistoryError(
            f"store: `{definition.name}` keeps no history: "
            "add, for example, `history: {versions: 20}` to it in the stores file of all instances"
        )


def version_at(host: PartitionHost, key: bytes, as_of: Timestamp) -> bytes | None:
    """Returns the stored value that was applied last among those committed by a time; None for an unknown key.

    Versions without a commit time are passed over. Raises BeforeHistoryError when all that is kept is younger, and
    NotServedError when the store has moved away.
    """
    oldest = None
    for value in host.versions(key):
        header = header_of(value)
        if header.flags & UNTIMED:
            continue
        oldest = (header.commit_seconds, header.commit_nanos)
        if oldest <= (as_of.seconds, as_of.nanos):
            return value
    if oldest is None:
        return None
    begins = Timestamp(seconds=oldest[0], nanos=oldest[1]).ToJsonString()
    raise BeforeHistoryError(f"as_of: the oldest version that is kept is of {begins}: ask for that time or a later one")


def fill_versions(
    answer: query.ListVersionsResponse,
    request: query.ListVersionsRequest,
    host: PartitionHost,
    before_offset: int,
    size: int,
) -> None:
    """Adds at most `size` versions, or 1 MiB, before an offset, and the token of the next page when there are more."""
    key = request.key
    used = 0
    epoch = host.place.epoch
    for value in host.versions(row_key(key.group, key.sort, key.member), before_offset):
        if len(answer.versions) == size or used >= PAGE_BYTES:
            answer.next_page_token = version_token.encode(request, epoch, before_offset)
            return
        before_offset = offset_of(value)
        used += len(value)
        fill_version(answer.versions.add(), epoch, value)
