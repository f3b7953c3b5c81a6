"""The command `statecast each-local`: runs a command for every row of a store, once in each run."""

import argparse
import asyncio
import os
import signal
import sys
import time
import uuid
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

import grpc.aio
from pydantic_settings import SettingsConfigDict

from statecast_client import tls
from statecast_client.argument_types import seconds, whole_number
from statecast_client.command_line import DEFAULT_ADDRESS
from statecast_client.errors import StatecastError
from statecast_client.rendering import decoder
from statecast_jobs.job_topic import KafkaJobTopic
from statecast_jobs.local_rows import InstanceRows
from statecast_jobs.row_command import ProcessCommand
from statecast_jobs.runner import Choices, Outcome, Runner
from statecast_service.errors import ServiceError
from statecast_service.kafka import KafkaSettings
from statecast_service.logs import configure_logs
from statecast_service.settings import load_settings

EPILOG = """\
Start one beside each instance of the query service, with the same --run. Each handles the rows that its instance
owns; those of an instance that is lost go on at the others. The row comes to COMMAND on standard input, as one line of
JSON. Its environment has STATECAST_JOB_RUN, _STORE, _GROUP, _SORT, _MEMBER, _ATTEMPT, and _ROW_ID, which is the same at
every attempt.

exit status:
  0  all rows have been handled
  1  all rows have been begun, and some failed at each attempt, or are in doubt because their runner died
  2  an argument, the store or the credential is wrong
  3  Kafka or the instance cannot be reached
  4  it was stopped before the run was complete
"""
_COUNT, _SECONDS = whole_number(1000), seconds(86_400)
LIMIT = 20
"""Rows that are named at the end."""


class Settings(KafkaSettings):
    """How the command reaches Kafka, from variables that begin with STATECAST_JOBS_."""

    model_config = SettingsConfigDict(env_prefix="STATECAST_JOBS_")


def main(arguments: Sequence[str]) -> int:
    """Runs the command; returns its exit status."""
    options = _parse(arguments)
    configure_logs(stream=sys.stderr)
    try:
        settings = load_settings(Settings, kafka_bootstrap=options.kafka, kafka_properties=options.kafka_properties)
        outcome = asyncio.run(_run(options, settings))
    except ServiceError as error:
        sys.stderr.write(f"statecast: {error}\n")
        return error.exit_status
    except StatecastError as error:
        sys.stderr.write(f"statecast: {' '.join(str(error).split())}\n")
        return 3
    sys.stdout.write(_report(options, outcome))
    if not outcome.complete:
        return 4
    return 1 if outcome.failed or outcome.in_doubt else 0


async def _run(options: Namespace, settings: Settings) -> Outcome:
    stopping = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stopping.set)
    choices = Choices(
        options.run,
        options.store,
        f"{os.uname().nodename}-{uuid.uuid4().hex}",
        options.parallel,
        options.attempts,
        options.lease,
        options.in_doubt == "repeat",
    )
    async with _channel(options) as channel:
        rows = InstanceRows(channel, options.address, options.store, options.timeout, time.monotonic)
        facts = await rows.facts()
        topic = KafkaJobTopic(settings, options.topic, options.run, options.store)
        decode = decoder(facts.message, options.descriptors)
        command = ProcessCommand(options.words, options.run, options.store, decode, options.command_timeout)
        return await Runner(choices, facts.partitions, topic, rows, command, time.monotonic).run(stopping)


def _channel(options: Namespace) -> grpc.aio.Channel:
    if not (options.tls or options.tls_ca or options.tls_certificate or options.tls_key):
        return grpc.aio.insecure_channel(options.address)
    secrets = tls.credentials(options.tls_ca, options.tls_certificate, options.tls_key)
    return grpc.aio.secure_channel(options.address, secrets)


def _report(options: Namespace, outcome: Outcome) -> str:
    counts = f"{outcome.handled} handled, {len(outcome.failed)} failed, {len(outcome.in_doubt)} in doubt"
    state = "complete" if outcome.complete else "stopped before it was complete"
    lines = [f"run {options.run} of {options.store} {state}: {counts}"]
    lines += [f"failed    {'/'.join(filter(None, key))}: {reason}" for key, reason in outcome.failed[:LIMIT]]
    lines += [f"in doubt  {'/'.join(filter(None, key))}" for key in outcome.in_doubt[:LIMIT]]
    return "".join(f"{each}\n" for each in lines)


def _parse(arguments: Sequence[str]) -> Namespace:
    """Ends the process with status 2 for wrong arguments."""
    parser = argparse.ArgumentParser(
        prog="statecast each-local",
        usage="statecast each-local STORE --run ID [options] -- COMMAND [ARGUMENT…]",
        description="Runs a command for every row of a store, once in each run.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add = parser.add_argument
    add("store", metavar="STORE")
    add("--run", required=True, metavar="ID", help="names the run: the same at all runners, another next time")
    address = os.environ.get("STATECAST_ADDRESS") or DEFAULT_ADDRESS
    add("--address", default=address, help=f"the instance beside it, as host:port [$STATECAST_ADDRESS, {address}]")
    add("--kafka", metavar="HOST:PORT", help="brokers, with commas [$STATECAST_JOBS_KAFKA_BOOTSTRAP, 127.0.0.1:9092]")
    add("--kafka-properties", type=Path, metavar="FILE", help="properties of the client, such as security.protocol")
    add("--topic", default="job-runs", help="where the runners hear of each other [job-runs]")
    add("--parallel", type=_COUNT, default=4, metavar="N", help="rows in work at the same time [4]")
    add("--attempts", type=_COUNT, default=3, metavar="N", help="how often a row is tried that fails [3]")
    add("--command-timeout", type=_SECONDS, default=60.0, metavar="S", help="the longest for one row [60]")
    add("--lease", type=_SECONDS, default=15.0, metavar="S", help="a silent runner is dead after this [15]")
    add(
        "--in-doubt",
        choices=["report", "repeat"],
        default="report",
        help="a row whose runner died while it was handled: name it at the end, or handle it again [report]",
    )
    add("--timeout", type=_SECONDS, default=10.0, metavar="S", help="the longest for a call of the instance [10]")
    add("--tls", action="store_true", help="encrypt, trusting the system's authorities unless --tls-ca is given")
    for name, what in (
        ("ca", "whose certificates to trust"),
        ("certificate", "the certificate to show"),
        ("key", "its key"),
    ):
        file = os.environ.get(f"STATECAST_TLS_{name.upper()}")
        help_text = f"{what}, as PEM [$STATECAST_TLS_{name.upper()}]"
        add(f"--tls-{name}", type=Path, default=Path(file) if file else None, metavar="FILE", help=help_text)
    descriptors = os.environ.get("STATECAST_DESCRIPTORS")
    add("--descriptors", type=Path, default=Path(descriptors) if descriptors else None, metavar="DIR")
    own, words = _split(arguments)
    options = parser.parse_args(own)
    if not words:
        parser.error("name a COMMAND behind --")
    if "\0" in options.run or not options.run:
        parser.error("--run must be a text without NUL")
    options.words = words
    return options


def _split(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    """Returns the arguments before and behind the first `--`."""
    words = list(arguments)
    if "--" not in words:
        return words, []
    place = words.index("--")
    return words[:place], words[place + 1 :]
