"""Tickets for credentials, and when they are needed."""

import json
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from statecast_client.push import Need, PushError, PushRefusedError
from statecast_client.push.access import Access, renewal_pause


class TicketOffice(BaseHTTPRequestHandler):
    """Gives a ticket for the credential `good`, nonsense for `odd`, and a redirect for `moved`."""

    def do_POST(self) -> None:
        shown = self.headers["apikey"]
        if shown == "moved":
            self.send_response(302)
            self.send_header("Location", "/elsewhere")
            self.end_headers()
            return
        self.send_response(200 if shown in ("good", "odd") else 401)
        self.end_headers()
        self.wfile.write(json.dumps({"ticket": f"for {self.path}"} if shown == "good" else {}).encode())

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def socket_address() -> Iterator[str]:
    with ThreadingHTTPServer(("127.0.0.1", 0), TicketOffice) as office:
        thread = Thread(target=office.serve_forever)
        thread.start()
        yield f"ws://127.0.0.1:{office.server_port}/edges/v1/stream"
        office.shutdown()
        thread.join()


async def test_a_ticket_comes_from_beside_the_socket_for_newer_credentials(socket_address: str) -> None:
    needs: list[Need] = []

    async def credentials(need: Need) -> dict[str, str]:
        needs.append(need)
        return {"apikey": "good"}

    assert await Access(credentials, None).ticket(socket_address) == "for /edges/v1/tickets"
    assert needs == ["expiring"]


async def test_credentials_are_headers_or_a_function_that_returns_them() -> None:
    async def later(need: Need) -> dict[str, str]:
        return {"apikey": f"to {need}"}

    assert await Access({"apikey": "a"}, None).headers("connect") == {"apikey": "a"}
    assert await Access(lambda need: {"apikey": f"to {need}"}, None).headers("connect") == {"apikey": "to connect"}
    assert await Access(later, None).headers("expired") == {"apikey": "to expired"}


async def test_a_refused_or_malformed_ticket_is_an_error(socket_address: str) -> None:
    with pytest.raises(PushRefusedError, match="/edges/v1/tickets answers 401") as refusal:
        await Access({"apikey": "bad"}, None).ticket(socket_address)
    with pytest.raises(PushRefusedError, match="/edges/v1/tickets answers 302"):
        await Access({"apikey": "moved"}, None).ticket(socket_address)
    with pytest.raises(PushError, match="does not answer as ws-edge does"):
        await Access({"apikey": "odd"}, None).ticket(socket_address)

    assert refusal.value.code == "401"


@pytest.mark.parametrize(("left_s", "pause_s"), [(100, 80), (3600, 3300), (0.1, 1), (-5, 1)])
def test_access_is_renewed_with_a_fifth_of_the_time_left_or_five_minutes(left_s: float, pause_s: float) -> None:
    assert renewal_pause(left_s) == pause_s
