"""Rows that benchmarks write."""

import zlib

from statecast.state.v1.state_pb2 import StateRecord
from testkit.keyed_topic_writers import PAYLOAD_BYTES, row_record


def test_payloads_have_their_size_and_hardly_compress() -> None:
    payloads = [StateRecord.FromString(row_record(number, 1)).payload for number in range(100)]

    assert {len(payload) for payload in payloads} == {PAYLOAD_BYTES}
    assert len(zlib.compress(b"".join(payloads))) > 0.4 * PAYLOAD_BYTES * len(payloads)
