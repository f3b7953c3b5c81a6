"""A breaking change of each form of docs/compatibility.md turns the test of that form red: `make broken-forms`.

The change is made in a copy of the part's sources, which its tests then import. A form that is a message of the
contract is held by `buf breaking`, of which `test_released_contract.py` shows the same.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

from testkit.waiting import scaled

ROOT = Path(__file__).parents[2]
QUERY, EDGE, PROCESSOR, JOBS = "services/query-service", "services/ws-edge", "services/stream-processor", "tools/jobs"


class Change(NamedTuple):
    """Replaces a text of a module, which is named by its path below the part's `src`."""

    part: str
    module: str
    before: str
    after: str
    red: str
    """The test that fails, below the part's `tests`."""


def of_query(module: str, before: str, after: str, red: str) -> Change:
    return Change(QUERY, f"query_service/{module}", before, after, red)


def of_edge(module: str, before: str, after: str, red: str) -> Change:
    return Change(EDGE, f"ws_edge/{module}", before, after, red)


def of_processor(module: str, before: str, after: str, red: str) -> Change:
    return Change(PROCESSOR, f"stream_processor/{module}", before, after, red)


STORE_KEYS, SHARD_MAP = "storage/store_keys.py", "cluster/shard_map.py"
CHECKPOINTS, LETTERS, PLACES = "run/checkpoints.py", "steps/dead_letters.py", "run/test_checkpoint_places.py"
TOKEN, TICKETS, EDGE_TICKETS = "watches/token.py", "auth/tickets.py", "auth/test_tickets.py"
KEYS_ON_DISK = "storage/test_store_keys.py::test_keys_and_values_on_disk_are_byte_for_byte_those_of_format_2"

CHANGES = {
    "rows on disk in another order": of_query(STORE_KEYS, 'Struct(">QQqqIB")', 'Struct(">QQqqBI")', KEYS_ON_DISK),
    "another format on disk": of_query(STORE_KEYS, "FORMAT = 2", "FORMAT = 3", KEYS_ON_DISK),
    "any format on disk is opened": of_query(
        "storage/store_directory.py",
        "if stored != str(store_keys.FORMAT).encode():",
        "if not stored.isdigit():",
        "storage/test_store_directory.py::test_a_directory_of_another_format_is_set_aside",
    ),
    "seeds of any origin are taken": of_query(
        "server/seeding.py",
        "                _check_origin(member.instance, checkpoint, origin_of(definition, topic))\n",
        "",
        "server/test_seeding.py::test_rows_that_are_kept_by_other_rules_are_refused",
    ),
    "another note on disk": of_query(STORE_KEYS, 'b"\\0spread"', 'b"\\0partitioner"', KEYS_ON_DISK),
    "another name of manifests": of_query(
        "storage/backup.py",
        '"manifest.json"',
        '"backup.json"',
        "storage/test_backup.py::test_a_manifest_as_releases_before_the_message_wrote_it_is_read",
    ),
    "another version of backups": of_query(
        "storage/backup.py",
        "_VERSION = 1",
        "_VERSION = 2",
        "storage/test_backup.py::test_a_manifest_as_releases_before_the_message_wrote_it_is_read",
    ),
    "another client id of members": of_query(
        SHARD_MAP,
        "{self.started_ms}|{topics}",
        "{self.started_ms}|{self.zone}|{topics}",
        "cluster/test_member_forms.py::test_client_ids_are_those_of_the_last_release",
    ),
    "members without features have none": of_query(
        "server/shard_channel.py",
        " or _FEATURES_OF_0_2",
        "",
        "cluster/test_member_forms.py::test_a_member_of_0_2_0_has_the_features_of_that_release",
    ),
    "unknown fields of reads are ignored": of_query(
        "reads/request_checks.py",
        "if len(unknown):",
        "if not unknown:",
        "reads/test_request_checks.py::test_a_field_of_a_later_release_is_refused",
    ),
    "page tokens of other fields": of_query(
        "reads/page_token.py",
        '"reverse", "local_only"',
        '"local_only", "reverse"',
        "reads/test_page_token.py::test_tokens_of_a_release_are_read",
    ),
    "page tokens of other keys": of_query(
        "reads/page_token.py",
        "key.sort, key.member",
        "key.member, key.sort",
        "reads/test_page_token.py::test_tokens_of_a_release_are_read",
    ),
    "page tokens of any version": of_query(
        "reads/page_token.py",
        "decoded.version > _VERSION",
        "decoded.version > 9",
        "reads/test_page_token.py::test_a_token_of_a_newer_release_begins_with_the_first_page",
    ),
    "another tombstone": of_query(
        "storage/record.py",
        '"statecast-state-record"',
        '"statecast-tombstone"',
        "storage/test_record.py::test_a_tombstone_without_its_header_is_poison",
    ),
    "tickets with other names": of_edge(
        TICKETS,
        '"use_by":',
        '"expires":',
        f"{EDGE_TICKETS}::test_an_edge_redeems_a_ticket_of_another_edge",
    ),
    "another version of tickets": of_edge(
        TICKETS, "ticket, version 2", "ticket, version 3", f"{EDGE_TICKETS}::test_a_ticket_of_the_last_release"
    ),
    "another version of the edge's page tokens": of_edge(
        TICKETS, "token, version 2", "token, version 3", f"{EDGE_TICKETS}::test_a_page_token_that_the_last_release"
    ),
    "another version of resume tokens": of_edge(
        TOKEN,
        'VERSION = "1"',
        'VERSION = "2"',
        "watches/test_token.py::test_a_token_of_the_last_and_of_the_next_release_goes_on",
    ),
    "resume tokens of other questions": of_edge(
        TOKEN,
        r"{store.rule!r}\0{store.private!r}",
        r"{store.private!r}\0{store.rule!r}",
        "watches/test_token.py::test_a_token_of_the_last_and_of_the_next_release_goes_on",
    ),
    "other keys of channels": of_edge(
        "channels/channels.py",
        '"watch"',
        '"watches"',
        "channels/test_channel_records.py::test_each_record_has_a_key_of_its_own_in_the_channels_group",
    ),
    "another form of the state": of_processor(
        CHECKPOINTS,
        "STATE_VERSION = 5",
        "STATE_VERSION = 6",
        "run/test_checkpoints.py::test_a_checkpoint_of_the_last_release_goes_on",
    ),
    "other names in the note of a checkpoint": of_processor(
        CHECKPOINTS,
        '"sink.topic.id"',
        '"sink.id"',
        "run/test_checkpoints.py::test_a_checkpoint_of_the_last_release_goes_on",
    ),
    "a state of any form goes on": of_processor(
        CHECKPOINTS,
        '"state": STATE_VERSION',
        '"state": None',
        "run/test_checkpoints.py::test_a_state_of_another_form_is_refused",
    ),
    "other names in the lease": of_processor(
        CHECKPOINTS, '"renewals": self', '"renewed": self', f"{PLACES}::test_a_free_one_is_taken_at_once"
    ),
    "another name of the lease": of_processor(
        CHECKPOINTS, 'f"{LEASE}.json"', '"writer.json"', f"{PLACES}::test_one_that_the_last_release_renews_is_refused"
    ),
    "other names in the note of a replay": of_processor(
        "run/replay.py", '"left"', '"open"', "run/test_replay.py::test_a_note_of_the_last_release_is_read"
    ),
    "other names in the count of dead letters": of_processor(
        "run/letters.py", '"ends"', '"counted"', "run/test_letters.py::test_the_count_of_the_last_release_goes_on"
    ),
    "other ids of rows in jobs": Change(
        JOBS,
        "statecast_jobs/row_command.py",
        'group, "", member)).encode()',
        "group, member)).encode()",
        "test_runner.py::test_a_row_keeps_its_id_when_its_sort_value_changes",
    ),
    "runners of newer releases are taken for dead": Change(
        JOBS,
        "statecast_jobs/ledger.py",
        "        self._heard_s[record.runner] = now_s\n",
        '        if record.WhichOneof("event"):\n            self._heard_s[record.runner] = now_s\n',
        "test_ledger.py::test_a_record_of_a_newer_runner_changes_nothing_and_shows_that_it_lives",
    ),
} | {
    f"another header {name} of dead letters": of_processor(
        LETTERS, f'"statecast-{name}"', f'"statecast-dead-{name}"', f"run/test_replay.py::{red}"
    )
    for name, red in {
        "topic": "test_a_letter_goes_back_as_the_record_that_it_was",
        "partition": "test_a_letter_goes_back_as_the_record_that_it_was",
        "offset": "test_a_letter_goes_back_as_the_record_that_it_was",
        "replayed": "test_a_letter_goes_back_as_the_record_that_it_was",
        "reason": "test_other_reasons_are_left_for_another_replay",
        "pipelines": "test_the_letters_headers_are_the_last_ones",
        "truncated": "test_the_letters_headers_are_the_last_ones",
    }.items()
}


@pytest.mark.long
@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_a_breaking_change_turns_a_test_red(change: Change, tmp_path: Path) -> None:
    sources = tmp_path / "src"
    shutil.copytree(ROOT / change.part / "src", sources)
    file = sources / change.module
    content = file.read_text()
    assert change.before in content, f"{change.module} has no {change.before!r} any more: write this change anew"
    file.write_text(content.replace(change.before, change.after))

    tests, _, name = change.red.partition("::")
    options = ["-q", "-p", "no:cacheprovider", "-k", name]
    command = [sys.executable, "-m", "pytest", *options, f"{change.part}/tests/{tests}"]
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    ended = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=scaled(60), check=False
    )

    assert f"\nFAILED {change.part}/tests/{change.red}" in ended.stdout, ended.stdout + ended.stderr
