"""Runs many cases side by side on one broker, one processor, one query service and the databases that they need."""

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path

from kit.capture import Capture
from kit.case import Case, Step, TopicChange
from kit.check import check
from kit.domain_files import prefix_of, sink_of, store_of, topic_of, write_domain
from kit.expectations import Observed, miscounts, plain, problems, undiagnosed
from kit.histories import CASE
from kit.history_player import HistoryPlayer
from kit.letters import SUFFIX, Letters
from kit.producers import Producers
from kit.servers import Servers
from kit.services import REFUSED, Services
from kit.sessions import Sessions
from testkit import topics
from testkit.waiting import scaled, wait_until

TIMEOUT_S = 90.0
"""How long after the last step everything must be as the cases say."""
COUNT_TIMEOUT_S = 90.0
"""How long counts may take to be those of all records: they move at checkpoints."""
PAUSE_S = 1.0
STEP_TIMEOUT_S = 30.0
"""How long a step may wait until the steps before it are served."""


class Run:
    """All that the cases share."""

    def __init__(self, cases: Sequence[Case], histories: int, directory: Path, stack: ExitStack) -> None:
        """`histories` is the number of random histories that are played."""
        self._cases = [case for case in cases if case.runs]
        self._checked = [case for case in cases if not case.runs]
        self._servers = Servers(directory, stack)
        self._servers.mount_messages()
        self._sessions = Sessions(self._servers)
        self._capture = Capture(self._servers, self._sessions)
        self._services = Services(self._servers)
        self._histories = histories
        self._doctor: dict[str, list[str]] = {}
        self._ended: dict[str, str] = {}
        """How the processor has ended, by the case with the records that ended it."""

    def results(self) -> Mapping[str, list[str]]:
        """Runs all; returns by case the results that are not as it says."""
        refusals = {case.name: check(case, self._servers.directory / "checked" / case.name) for case in self._checked}
        results = {case.name: problems(case, Observed(refusals=refusals)) for case in self._checked}
        return {**results, **self._run()} if self._cases else results

    def _run(self) -> Mapping[str, list[str]]:
        late = [case for case in self._cases if case.expect.refused and case.expect.refused.at == "start"]
        for case in self._cases:
            if case not in late:
                self._write(case)
        self._capture.begin(self._cases)
        self._services.apply()
        self._letters = Letters(self._servers.broker.bootstrap)
        self._producers = Producers(self._servers.broker.bootstrap)
        self._services.start()
        for case in late:
            self._add_late(case)
        for part in range(max(len(_parts(case)) for case in self._cases)):
            self._act(part)
        player = HistoryPlayer(self._servers.postgres.server.dsn, self._histories) if self._histories else None
        if player is not None:
            player.play()
        judged = self._judged()
        return {**judged, CASE.name: self._differences(player)} if player is not None else judged

    def _differences(self, player: HistoryPlayer) -> list[str]:
        """Waits until all histories are as SQL has them, or none has become so for a while; returns the differences."""
        fewest, deadline = self._histories + 1, 0.0
        while wrong := player.wrong(self._services):
            if len(wrong) < fewest:
                fewest, deadline = len(wrong), time.monotonic() + scaled(TIMEOUT_S)
            if time.monotonic() > deadline:
                return player.described(wrong)
            time.sleep(PAUSE_S)
        return []

    def _write(self, case: Case, prefix: str = "") -> None:
        if case.source != "postgres":
            write_domain(case, self._servers.messages, self._servers.domains / f"{prefix}{case.name}")

    def _add_late(self, case: Case) -> None:
        """Gives the running processor the pipelines that it refuses, on topics that somebody has made."""
        for topic in case.topics:
            name, made = topic_of(case, topic), case.topics[topic]
            policy = {"cleanup.policy": "compact"} if made.compacted else {}
            topics.create_topic(self._servers.broker.bootstrap, name, made.partitions, {**policy, **made.config})
            topics.create_topic(self._servers.broker.bootstrap, f"{name}{SUFFIX}", 1)
        for pipeline in case.pipelines:
            topics.create_topic(
                self._servers.broker.bootstrap, sink_of(case, pipeline), 1, {"cleanup.policy": "compact"}
            )
        self._write(case, REFUSED)

    def _act(self, part: int) -> None:
        """Does the steps of all cases between two of those that stop or start the processor."""
        steps = {case.name: _parts(case)[part] for case in self._cases if part < len(_parts(case))}
        if any(each and each[0].processor == "stop" for each in steps.values()):
            self._wait_read(part)
            self._services.processor.stop()
        if any(each and each[0].processor == "start" for each in steps.values()):
            self._services.processor.start()
            self._services.processor.wait_ready()
        for case in self._cases:
            for step in steps.get(case.name, ()):
                self._do(case, step)

    def _do(self, case: Case, step: Step) -> None:
        if step.sql is not None:
            self._sessions.of(case, step.session).execute(step.sql)
        elif step.produce is not None:
            self._producers.produce(case, step)
        elif step.transaction is not None:
            self._producers.transact(case, step)
        elif step.until is not None:
            self._wait_served(case, step.until)
        elif step.topic is not None:
            self._change_topic(case, step.topic)
        elif step.import_ is not None:
            self._capture.import_table(case, step.import_)
            self._capture.configure(prefix_of(case), [case])
            self._services.apply()

    def _wait_served(self, case: Case, expected: Mapping[str, Mapping[str, object]]) -> None:
        """Waits until these rows are served; when they never are, the case goes on, and fails at its end."""
        deadline = time.monotonic() + scaled(STEP_TIMEOUT_S)
        while time.monotonic() < deadline and not self._served(case, expected):
            time.sleep(PAUSE_S)

    def _served(self, case: Case, expected: Mapping[str, Mapping[str, object]]) -> bool:
        served = self._services.rows([store_of(case, name) for name in expected])
        for name, rows in expected.items():
            seen = served[store_of(case, name)]
            if isinstance(seen, str) or not plain(rows).items() <= plain(seen).items():
                return False
        return True

    def _change_topic(self, case: Case, change: TopicChange) -> None:
        bootstrap = self._servers.broker.bootstrap
        if change.delete is not None:
            topics.delete_topic(bootstrap, topic_of(case, change.delete))
        if change.create is not None:
            topics.create_topic(bootstrap, topic_of(case, change.create), change.partitions)
        if change.grow is not None:
            topics.grow_topic(bootstrap, topic_of(case, change.grow), change.partitions)

    def _wait_read(self, part: int) -> None:
        """Waits until the processor has counted every record of those cases for which it is stopped now."""
        stopped = [case for case in self._cases if part < len(parts := _parts(case)) and parts[part]]
        unread = partial(self._unread, stopped)
        wait_until(lambda: not unread(), lambda: f"unread: {unread()}", COUNT_TIMEOUT_S, PAUSE_S)

    def _unread(self, cases: Sequence[Case]) -> dict[str, int]:
        """Returns how many records of their sources the pipelines have not read, where there are any."""
        read = self._services.counts("stream_processor_input_rows_total")
        written = {name: self._count(topic) for case in cases for name, topic in self._services.sources(case).items()}
        return {name: count - read[name, ""] for name, count in written.items() if count > read[name, ""]}

    def _count(self, topic: str) -> int:
        return topics.count_records(self._servers.broker.bootstrap, topic)

    def _judged(self) -> Mapping[str, list[str]]:
        """Waits until all is as the cases say, or the time is over; returns the differences."""
        self._wait_for(problems, TIMEOUT_S)
        self._look_by_doctor()
        self._wait_for(_all_problems, COUNT_TIMEOUT_S)
        observed = self._observed(self._cases)
        return {case.name: self._judgement(case, observed) for case in self._cases}

    def _judgement(self, case: Case, observed: Observed) -> list[str]:
        if case.name in self._ended:
            return [f"the processor has ended: {self._ended[case.name]}"]
        return _all_problems(case, observed)

    def _wait_for(self, judge: Callable[[Case, Observed], list[str]], timeout_s: float) -> None:
        deadline = time.monotonic() + scaled(timeout_s)
        waiting = self._cases
        while waiting and time.monotonic() < deadline:
            self._revive()
            observed = self._observed(waiting)
            waiting = [case for case in waiting if case.name not in self._ended and judge(case, observed)]
            time.sleep(PAUSE_S)

    def _revive(self) -> None:
        """Starts a processor that has ended again, without the pipelines of the case that has ended it."""
        processor = self._services.processor
        if processor.running:
            return
        end = processor.log_tail()
        places = {case: end.find(store_of(case, "")) for case in self._cases if case.name not in self._ended}
        guilty = [case for case, place in places.items() if place >= 0]
        assert guilty, f"the processor has ended, by none of the cases:\n{end}"
        for case in guilty:
            self._ended[case.name] = end[-2000:]
            self._services.remove(case)
        processor.start()
        processor.wait_ready()

    def _look_by_doctor(self) -> None:
        """Asks the doctor about the connectors of all cases that say something about it."""
        for case in self._cases:
            prefix = prefix_of(case)
            if case.expect.doctor and prefix not in self._doctor:
                files, connect = self._capture.out(prefix), self._capture.url(case.source)
                self._doctor[prefix] = self._services.doctor(files, connect, self._servers.url(case.source))

    def _observed(self, cases: Sequence[Case]) -> Observed:
        self._letters.read()
        stores = [store_of(case, name) for case in cases for name in case.expect.stores]
        return Observed(
            rows=self._services.rows(stores),
            outcomes=self._services.counts("stream_processor_records_total"),
            letters=self._letters.reasons,
            log=self._services.processor.log,
            doctor={case.name: self._doctor.get(prefix_of(case), ()) for case in cases},
            refusals=self._capture.refusals,
        )


def _all_problems(case: Case, observed: Observed) -> list[str]:
    return [*problems(case, observed), *undiagnosed(case, observed), *miscounts(case, observed)]


def _parts(case: Case) -> list[list[Step]]:
    """Returns the case's steps, parted before each that stops or starts the processor."""
    parts: list[list[Step]] = [[]]
    for step in case.steps:
        if step.processor is not None:
            parts.append([])
        parts[-1].append(step)
    return parts
