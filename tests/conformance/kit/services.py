"""The processor and the query service of a run, and the rows, counts and lines of each."""

import asyncio
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path

import yaml
from prometheus_client.parser import text_string_to_metric_families

from kit.case import Case
from kit.domain_files import store_of
from kit.servers import Servers
from statecast.state.v1 import state_pb2
from statecast_client import StatecastClient, StatecastError
from statecast_client.rendering import decoder
from statecast_onboarding.doctor import command as doctor
from statecast_onboarding.domains.command import apply
from testkit.ports import free_ports
from testkit.query_cluster import QueryInstance
from testkit.stream_processor.process import Processor

CHECKPOINTS = "30s"
"""Counts move with them, and a run waits for counts a few times. Each costs the plan of a batch."""
REFUSED = "refused."
"""Begins the name of the directory of a domain with refused pipelines."""
LOOKUPS = 100
"""How many keys of a store are also looked up one by one: a scan finds keys on partitions that are not theirs, too."""
NOT_FOUND = "a scan has it, and a lookup by its key does not"
Rows = Mapping[str, object]


class Services:
    """One processor that follows the directories of all domains, and one query service of all their stores."""

    def __init__(self, servers: Servers) -> None:
        self._servers = servers
        self._system = servers.directory / "system"
        self._query: QueryInstance | None = None
        self._processor: Processor | None = None

    @property
    def directories(self) -> list[Path]:
        """The domains that are applied: those of connectors, and those of cases."""
        return sorted(each for each in self._servers.domains.iterdir() if not each.name.startswith(REFUSED))

    def _files(self, case: Case) -> list[Path]:
        return sorted(self._servers.domains.glob(f"*/{store_of(case, '')}*.yaml"))

    def sources(self, case: Case) -> dict[str, str]:
        """Returns the topic that each pipeline of the case reads, by the pipeline's name."""
        files = (yaml.safe_load(file.read_text()) for file in self._files(case))
        return {file["name"]: file["source"]["topic"] for file in files}

    def remove(self, case: Case) -> None:
        """Takes the pipelines of a case away."""
        for file in self._files(case):
            file.unlink()

    def apply(self) -> None:
        """Makes topics and stores of the domains, as `statecast apply` does."""
        words = [*map(str, self.directories), "--kafka", self._servers.broker.bootstrap, "--out", str(self._system)]
        with redirect_stdout(io.StringIO()), redirect_stderr(io.StringIO()) as said:
            status = apply([*words, "--replication-factor", "1"])
        assert status == 0, said.getvalue()

    def start(self) -> None:
        """Starts both, and waits until they are ready."""
        settings = {
            "kafka_bootstrap": self._servers.broker.bootstrap,
            "group_id": "conformance",
            "stores": self._system / "stores.yaml",
            "replicas": 1,
        }
        query = QueryInstance("conformance", settings, self._servers.directory)
        self._query = self._servers.stack.enter_context(query)
        query.start()
        own = {"checkpoint_interval": CHECKPOINTS, "driver_memory": "2g"}
        bootstrap, port = self._servers.broker.bootstrap, free_ports(1)[0]
        processor = Processor(self._servers.directory, bootstrap, port, [self._servers.domains], **own)
        self._processor = self._servers.stack.enter_context(processor)
        processor.start()
        processor.wait_ready()
        query.wait_ready()

    @property
    def processor(self) -> Processor:
        assert self._processor is not None, "the processor has not been started"
        return self._processor

    def counts(self, name: str) -> Counter[tuple[str, str]]:
        """Returns a counter of the processor, by pipeline and, if it has one, outcome."""
        counts: Counter[tuple[str, str]] = Counter()
        _, page = self.processor.get("/metrics")
        lines = "".join(f"{line}\n" for line in page.splitlines() if line.startswith(name))
        for family in text_string_to_metric_families(lines):
            for sample in family.samples:
                labels = sample.labels
                pipeline = labels.get("pipeline") or labels.get("query", "")
                counts[pipeline, labels.get("outcome", "")] += int(sample.value)
        return counts

    def rows(self, stores: Sequence[str]) -> dict[str, Rows | str]:
        """Returns the rows of each store by key or `group/member`; where it cannot be read the reason."""
        return asyncio.run(self._rows(stores))

    async def _rows(self, stores: Sequence[str]) -> dict[str, Rows | str]:
        assert self._query is not None, "the query service has not been started"
        served = yaml.safe_load((self._system / "stores.yaml").read_text())["stores"]
        messages = {store["name"]: store["message"] for store in served}
        async with StatecastClient([self._query.address]) as client:
            return {store: await self._scan(client, store, messages.get(store, "")) for store in stores}

    async def _scan(self, client: StatecastClient, store: str, message: str) -> Rows | str:
        decode = decoder(message, self._servers.messages)
        rows, keys = dict[str, object](), list[state_pb2.StateKey]()
        try:
            async for state in client.scan(store):
                rows[_text(state.key)] = decode(state.payload)
                keys.append(state.key)
            found = await client.batch_get(store, keys[:LOOKUPS])
        except StatecastError as error:
            return str(error)
        for result in found:
            if not result.HasField("state"):
                rows[_text(keys[result.index])] = NOT_FOUND
        return rows

    def doctor(self, files: Path, connect: str, database: str) -> list[str]:
        """Returns the lines of `statecast doctor` on a connector, and on its tables' files where they were imported."""
        named = ["--connect", connect, "--connector", files.name, "--database", database]
        imported = ["--files", str(files)] if files.exists() else []
        with redirect_stdout(io.StringIO()) as said, redirect_stderr(said):
            doctor.main([*imported, "--kafka", self._servers.broker.bootstrap, *named])
        return said.getvalue().splitlines()


def _text(key: state_pb2.StateKey) -> str:
    return f"{key.group}/{key.member}" if key.member else key.group
