"""Plain types become messages of the contract, and back."""

from google.protobuf.duration_pb2 import Duration

from query_service.lookups import Key, RangeResult, Row
from query_service.serving import messages, responses
from query_service.storage.progress import Absence, Freshness
from query_service.storage.store_keys import HEADER, UNTIMED
from statecast.position import Position
from statecast.query.v1 import query_pb2, query_service_pb2
from statecast.state.v1 import state_pb2

KEY = state_pb2.StateKey(group="g", sort="1", member="m")


def test_a_row_becomes_a_state() -> None:
    state = query_pb2.State()
    responses.fill_state(state, "g", "1", "m", 77, HEADER.pack(1, 2, 5, 1_700_000_000, 250, 0) + b"row")

    assert state.key == KEY
    assert (state.position.epoch, state.position.offset) == (77, 5)
    assert (state.commit_time.seconds, state.commit_time.nanos) == (1_700_000_000, 250)
    assert state.payload == b"row"


def test_a_row_without_a_commit_time_leaves_it_out() -> None:
    state = query_pb2.State()
    responses.fill_state(state, "g", "", "", 77, HEADER.pack(1, 2, 5, 0, 0, UNTIMED))

    assert not state.HasField("commit_time")


def test_a_remembered_deletion_tells_its_position_and_time() -> None:
    message = query_pb2.Absence()
    messages.fill_absence(message, Absence(Position(77, 5), deleted=True, commit_time=(1_700_000_000, 0)))

    assert message.deleted
    assert message.position.offset == 5
    assert message.commit_time.seconds == 1_700_000_000
    assert not message.HasField("unchanged_since")


def test_nothing_known_is_absent_as_of_the_last_record() -> None:
    message = query_pb2.Absence()
    messages.fill_absence(message, Absence(Position(77, 99)))

    assert not message.deleted
    assert message.position == state_pb2.Position(epoch=77, offset=99)
    assert not message.HasField("commit_time")


def test_nothing_known_has_not_changed_since_the_last_deletion_that_was_forgotten() -> None:
    message = query_pb2.Absence()
    messages.fill_absence(message, Absence(Position(77, 99), purged_offset=3))

    assert message.unchanged_since == state_pb2.Position(epoch=77, offset=3)


def test_an_absence_survives_the_way_to_a_peer_and_a_freshness_says_that_it_was_forwarded() -> None:
    absence = Absence(Position(77, 99), deleted=True, commit_time=(1, 2), purged_offset=3)
    freshness = Freshness(2, 3, 4, 77, 5, "query-1")

    absence_message, freshness_message = query_pb2.Absence(), query_pb2.Freshness()
    messages.fill_absence(absence_message, absence)
    messages.fill_freshness(freshness_message, freshness)

    assert messages.absence_of(absence_message) == absence
    assert messages.forwarded_freshness(freshness_message) == freshness._replace(forwarded=True)


def test_a_key_is_split_into_its_parts() -> None:
    response = query_pb2.RangeResult()
    value = HEADER.pack(1, 1, 1, 0, 0, UNTIMED)
    rows = [Row(b"g\x001\x00m", 77, value, 0), Row(b"g", 77, value, 0)]
    responses.fill_range(response, 0, RangeResult(Position(77, 1), rows))

    assert [state.key for state in response.states] == [KEY, state_pb2.StateKey(group="g")]
    assert messages.key_of(KEY) == Key("g", "1", "m")


def test_the_wait_is_told_in_seconds() -> None:
    def wait_s(max_wait: Duration | None = None) -> float:
        return messages.batch_query(query_service_pb2.BatchGetStatesRequest(max_wait=max_wait)).max_wait_s

    assert wait_s(Duration(nanos=250_000_000)) == 0.25
    assert wait_s() == 0
    assert wait_s(Duration(seconds=1, nanos=-1)) < 0


def test_a_query_survives_the_way_to_a_peer() -> None:
    batch = query_service_pb2.BatchGetStatesRequest(store="s", max_wait=Duration(seconds=1))
    batch.keys.add(key=KEY, after=state_pb2.Position(epoch=7, offset=0))
    batch.ranges.add(group="g", sort_from="1", limit=3, reverse=True, after=state_pb2.Position(epoch=7, offset=-1))
    batch.bounds.at_least.offset = 4
    scan = query_service_pb2.ScanStatesRequest(store="s", group="g", sort_prefix="2", page_size=3, reverse=True)
    scan.bounds.max_lag_ms = 0
    window = query_service_pb2.ScanStatesRequest(store="s", group_from="a", group_to="f", sort_from="1", sort_to="2")
    get = query_service_pb2.GetStateRequest(store="s", key=KEY)
    get.as_of.nanos = 5
    versions = query_service_pb2.ListVersionsRequest(store="s", key=KEY, page_size=3, page_token="t")
    sent_batch, sent_scan = query_service_pb2.BatchGetStatesRequest(), query_service_pb2.ScanStatesRequest()
    sent_window = query_service_pb2.ScanStatesRequest()
    messages.fill_batch_request(sent_batch, messages.batch_query(batch))
    messages.fill_scan_request(sent_scan, messages.scan_query(scan))
    messages.fill_scan_request(sent_window, messages.scan_query(window))

    assert [sent_batch, sent_scan, sent_window] == [batch, scan, window]
    assert [messages.get_query(get).encoded, messages.versions_query(versions).encoded] == [get, versions]
