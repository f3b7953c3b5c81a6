"""The load in a process of its own: who forks must have no threads in the middle of calls."""

import multiprocessing
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any, Concatenate, ParamSpec, TypeVar

from drivers.query_load import QueryLoad
from drivers.waiting import scaled

ANSWER_S = 120

P = ParamSpec("P")
T = TypeVar("T")


class LoadProcess:
    """Calls the methods of a QueryLoad where it lives: `ask(QueryLoad.fill)`."""

    def __init__(self, bootstrap: str, topic: str, keys: list[str]) -> None:
        """Starts the process."""
        context = multiprocessing.get_context("spawn")
        self._connection, theirs = context.Pipe()
        self._process = context.Process(target=_serve, args=(theirs, bootstrap, topic, keys), daemon=True)
        self._process.start()
        theirs.close()

    def ask(self, method: Callable[Concatenate[QueryLoad, P], T], *arguments: P.args, **named: P.kwargs) -> T:
        """Returns what the method returns there; raises what it raises."""
        self._connection.send((method, arguments, named))
        assert self._connection.poll(scaled(ANSWER_S)), f"the load does not answer {method.__name__}"
        error, result = self._connection.recv()
        if error is not None:
            raise error
        answer: T = result
        return answer

    def close(self) -> None:
        """Ends the load and its process."""
        try:
            self.ask(QueryLoad.close)
        finally:
            self._connection.close()
            self._process.join(scaled(10))
            self._process.kill()
            self._process.join()


def _serve(connection: "Connection[Any, Any]", bootstrap: str, topic: str, keys: list[str]) -> None:
    load = QueryLoad(bootstrap, topic, keys)
    while True:
        try:
            method, arguments, named = connection.recv()
        except EOFError:
            return
        try:
            connection.send((None, method(load, *arguments, **named)))
        except Exception as error:  # noqa: BLE001  the one who asked is told
            connection.send((error, None))
