"""Runs all processes of a stack, and ends them all when it is told to or when one keeps failing."""

import asyncio
import os
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import structlog

from local_stack.errors import NotReadyError
from local_stack.ledger import Entry, Ledger, write_private
from local_stack.leftovers import RUN_VARIABLE
from local_stack.process_spec import ProcessSpec
from local_stack.restart_policy import RestartPolicy
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.supervised_process import SupervisedProcess

log = structlog.get_logger()

StackText = Callable[[Mapping[str, Entry]], str]
"""Makes the text of the stack file from the processes as they are now."""


class Supervisor:
    """Starts the processes as their dependencies allow and restarts those that end.

    It writes the ledger at each change, and the stack file once all are ready and at each change from then on.
    """

    def __init__(
        self,
        specs: Sequence[ProcessSpec],
        directory: StackDirectory,
        settings: Settings,
        run: str,
        stack_text: StackText,
        clock: Callable[[], float],
    ) -> None:
        self._directory = directory
        self._settings = settings
        self._run = run
        self._stack_text = stack_text
        self._clock = clock
        self._began = clock()
        self._announced = False
        self.processes = {spec.name: self._supervised(spec) for spec in specs}

    async def run(self, stop: asyncio.Event) -> None:
        """Keeps the stack until `stop` is set, and returns when everything has ended.

        Raises LocalStackError when a process cannot be started, keeps ending, or is not ready in time; everything
        has ended then too.
        """
        tasks = [asyncio.create_task(self._keep(process)) for process in self.processes.values()]
        tasks.append(asyncio.create_task(self._announce()))
        keeping: asyncio.Future[list[None]] = asyncio.gather(*tasks)
        stopping = asyncio.create_task(stop.wait())
        ends: list[asyncio.Future[Any]] = [keeping, stopping]
        try:
            await asyncio.wait(ends, return_when=asyncio.FIRST_COMPLETED)
            if keeping.done():
                keeping.result()
        finally:
            for task in (stopping, *tasks):
                task.cancel()
            await asyncio.gather(stopping, *tasks, keeping, return_exceptions=True)
            await self._stop()

    async def _keep(self, process: SupervisedProcess) -> None:
        after = [self.processes[name].was_ready for name in process.spec.after]
        await process.run(after, {RUN_VARIABLE: self._run}, self._settings.stop_grace_s)

    async def _announce(self) -> None:
        try:
            async with asyncio.timeout(self._settings.start_timeout_s):
                for process in self.processes.values():
                    await process.was_ready.wait()
        except TimeoutError:
            raise NotReadyError(self._late()) from None
        self._announced = True
        self._changed()
        log.info("stack is ready", after_s=round(self._clock() - self._began, 1))

    def _late(self) -> str:
        late = [process for process in self.processes.values() if not process.was_ready.is_set()]
        reasons = "; ".join(
            f"{each.spec.name}: {each.entry.reason or each.entry.state} (log: {each.entry.log})" for each in late
        )
        return f"not ready within {self._settings.start_timeout_s:g} s: {reasons}"

    async def _stop(self) -> None:
        self._announced = False
        self._directory.stack_file.unlink(missing_ok=True)
        for last in (False, True):
            wave = [process for process in self.processes.values() if process.spec.stops_last is last]
            await asyncio.gather(*(process.stop(self._settings.stop_grace_s) for process in wave))

    def _supervised(self, spec: ProcessSpec) -> SupervisedProcess:
        settings = self._settings
        policy = RestartPolicy(
            settings.restart_first_s, settings.restart_most_s, settings.restart_limit, settings.restart_window_s
        )
        log_file = self._directory.log(spec.name)
        hold_file = self._directory.held / spec.name
        return SupervisedProcess(spec, log_file, hold_file, policy, self._clock, self._changed)

    def _changed(self) -> None:
        entries = {name: process.entry for name, process in self.processes.items()}
        ledger = Ledger(run=self._run, supervisor=os.getpid(), processes=entries)
        write_private(self._directory.ledger, ledger.model_dump_json(indent=1))
        if self._announced:
            write_private(self._directory.stack_file, self._stack_text(entries))
