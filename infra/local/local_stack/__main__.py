"""The command `local-stack`: starts, shows, demonstrates and ends the whole of Statecast on this machine."""

import argparse
import signal
import sys

import structlog
from pydantic import ValidationError
from pydantic_core import ErrorDetails
from rich.console import Console

from local_stack import child_process
from local_stack.background import start_stack, stop_stack
from local_stack.demo import run_demo
from local_stack.errors import LocalStackError
from local_stack.foreground import run_stack
from local_stack.settings import Settings
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import read_stack
from local_stack.status import addresses, show_status
from local_stack.whole_stack import whole_stack

FAILED, BAD_USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143


def main() -> None:
    """Runs the command of the arguments and exits: 0 well, 1 failed, 2 a bad setting; see the README for `status`."""
    arguments = _arguments()
    signal.signal(signal.SIGTERM, _end_orderly)
    try:
        sys.exit(_run(arguments, Settings()))
    except ValidationError as error:
        _complain("; ".join(_wrong_variable(problem) for problem in error.errors()))
        sys.exit(BAD_USAGE)
    except LocalStackError as error:
        _complain(str(error))
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _complain(text: str) -> None:
    Console(stderr=True).print(f"local-stack: {text}", style="red", markup=False, highlight=False, soft_wrap=True)


def _wrong_variable(problem: ErrorDetails) -> str:
    name = "_".join(str(part) for part in problem["loc"]).upper()
    return f"LOCAL_STACK_{name}={problem['input']!r}: {problem['msg']}"


def _end_orderly(*_: object) -> None:
    sys.exit(TERMINATED)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="local-stack", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("up", help="start the stack in the background and wait until it is ready")
    down = commands.add_parser("down", help="end the stack and everything that it started")
    down.add_argument("--wipe", action="store_true", help="remove its data too")
    commands.add_parser("status", help="show what runs, where, and whether it is ready")
    commands.add_parser("demo", help="show orders changing live behind the gateway")
    commands.add_parser("run", help="run the stack in the foreground until Ctrl-C")
    return parser.parse_args()


def _run(arguments: argparse.Namespace, settings: Settings) -> int:
    console = Console(highlight=False)
    match arguments.command:
        case "up":
            return _up(settings, console)
        case "down":
            return _down(settings, console, wipe=arguments.wipe)
        case "status":
            return show_status(settings, console)
        case "demo":
            return run_demo(settings, console)
        case _:
            _log_to_stderr()
            run_stack(settings, whole_stack)
            return 0


def _up(settings: Settings, console: Console) -> int:
    start_stack(settings, child_process.start_detached, console.print)
    console.print(addresses(read_stack(StackDirectory(settings.directory.absolute()).stack_file)))
    return 0


def _down(settings: Settings, console: Console, *, wipe: bool) -> int:
    directory = StackDirectory(settings.directory.absolute())
    ended = stop_stack(settings)
    console.print("the stack has ended" if ended else f"nothing runs in {directory.root}")
    if wipe:
        directory.wipe()
        console.print(f"removed {directory.data}")
    return 0


def _log_to_stderr() -> None:
    shown: structlog.types.Processor = structlog.processors.JSONRenderer()
    if sys.stderr.isatty():
        shown = structlog.dev.ConsoleRenderer()
    structlog.configure(
        processors=[structlog.processors.add_log_level, structlog.processors.TimeStamper("iso"), shown],
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
    )


if __name__ == "__main__":
    main()
