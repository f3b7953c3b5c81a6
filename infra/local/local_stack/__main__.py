"""The command `local-stack`: starts, shows, demonstrates and ends the whole of Statecast on this machine."""

import argparse
import signal
import sys

from pydantic import ValidationError
from rich.console import Console

from local_stack import LocalStackError
from local_stack.demo import run_demo
from local_stack.running_stack import run_stack, start_stack, stop_stack
from local_stack.settings import Settings, variable
from local_stack.specs import whole_stack
from local_stack.stack_directory import StackDirectory
from local_stack.stack_file import read_stack
from local_stack.status import addresses, show_status
from statecast_service.logs import configure_logs
from testkit import processes

FAILED, BAD_USAGE, INTERRUPTED, TERMINATED = 1, 2, 130, 143
COMMANDS = {
    "up": "start the stack in the background and wait until it is ready",
    "down": "end the stack and everything that it started",
    "status": "show what runs, where, and whether it is ready",
    "demo": "show orders changing live behind the gateway",
    "run": "run the stack in the foreground until Ctrl-C",
}


def main() -> None:
    """Runs the command of the arguments and exits: 0 well, 1 failed, 2 a bad setting; see the README for `status`."""
    parser = argparse.ArgumentParser(prog="local-stack", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    parsers = {name: commands.add_parser(name, help=text) for name, text in COMMANDS.items()}
    parsers["down"].add_argument("--wipe", action="store_true", help="remove its data too")
    arguments = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(TERMINATED))
    try:
        sys.exit(_run(arguments, Settings(), Console(highlight=False)))
    except ValidationError as error:
        problems = (f"{variable(str(each['loc'][0]))}={each['input']!r}: {each['msg']}" for each in error.errors())
        _complain("; ".join(problems))
        sys.exit(BAD_USAGE)
    except LocalStackError as error:
        _complain(str(error))
        sys.exit(FAILED)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)


def _run(arguments: argparse.Namespace, settings: Settings, console: Console) -> int:
    directory = StackDirectory(settings.directory)
    match arguments.command:
        case "up":
            start_stack(settings, processes.start_detached, console.print)
            console.print(addresses(read_stack(directory.stack_file)))
        case "down":
            ended = stop_stack(settings)
            console.print("the stack has ended" if ended else f"nothing runs in {directory.root}")
            if arguments.wipe:
                directory.wipe()
                console.print(f"removed {directory.data}")
        case "status":
            return show_status(settings, console)
        case "demo":
            return run_demo(settings, console)
        case _:
            configure_logs()
            run_stack(settings, whole_stack)
    return 0


def _complain(text: str) -> None:
    Console(stderr=True).print(f"local-stack: {text}", style="red", markup=False, highlight=False, soft_wrap=True)


if __name__ == "__main__":
    main()
