"""Changes by the plugins cors and response-transformer to the headers that an upstream sends."""

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.requests import Request
from starlette.responses import Response
from typing_extensions import override

from kong_envoy import render
from testkit.gateway_under_test import TARGET, TIMEOUT_S, running_envoy
from testkit.kong_envoy import EchoUpstream
from testkit.ports import free_ports
from testkit.waiting import wait_until

ALICE = {"apikey": "alice-demo-key"}
Document = dict[str, Any]


class OutspokenUpstream(EchoUpstream):
    """Sends some headers with every answer."""

    def __init__(self, address: str, headers: Mapping[str, str]) -> None:
        super().__init__("outspoken", address)
        self._headers = headers

    @override
    async def _echo(self, request: Request) -> Response:
        answer = await super()._echo(request)
        answer.headers.update(self._headers)
        return answer


@contextmanager
def answering(
    document: Document, environment: dict[str, str], directory: Path, headers: Mapping[str, str]
) -> Iterator[str]:
    """Runs a gateway before an upstream that sends these headers; yields the gateway's address."""
    listen, admin, address = (f"127.0.0.1:{port}" for port in free_ports(3))
    resolve = {TARGET: [address]}
    config = render(document, listen_http=listen, environment=environment, resolve=resolve, admin=admin)
    upstream = OutspokenUpstream(address, headers)
    upstream.start()
    try:
        with running_envoy(config, directory):
            wait_until(lambda: _get(listen).status_code == 200, "the gateway answers")
            yield listen
    finally:
        upstream.stop()


def _get(gateway: str, **headers: str) -> httpx.Response:
    return httpx.get(f"http://{gateway}/v1/x", headers=ALICE | headers, timeout=TIMEOUT_S)


def config_of(document: Document, name: str) -> Document:
    config: Document = next(each for each in document["plugins"] if each["name"] == name)["config"]
    return config


def test_an_only_origin_is_named_whoever_asks(document: Document, environment: dict[str, str], tmp_path: Path) -> None:
    config_of(document, "cors")["origins"] = ["https://app.example.org"]
    with answering(document, environment, tmp_path, {}) as gateway:
        answers = [_get(gateway), _get(gateway, Origin="https://evil.example")]

    assert [each.headers["access-control-allow-origin"] for each in answers] == ["https://app.example.org"] * 2


def test_an_upstream_cannot_allow_what_the_gateway_does_not(
    document: Document, environment: dict[str, str], tmp_path: Path
) -> None:
    sent = {"Access-Control-Allow-Origin": "*", "Vary": "Accept-Encoding"}
    with answering(document, environment, tmp_path, sent) as gateway:
        unlisted, listed = _get(gateway, Origin="https://evil.example"), _get(gateway, Origin="http://localhost:3000")

    assert "access-control-allow-origin" not in unlisted.headers
    assert listed.headers.get_list("access-control-allow-origin") == ["http://localhost:3000"]
    assert {word.strip() for word in listed.headers["vary"].split(",")} == {"Accept-Encoding", "Origin"}


def test_credentials_and_headers_are_only_told_when_the_file_says_so(
    document: Document, environment: dict[str, str], tmp_path: Path
) -> None:
    config = config_of(document, "cors")
    config["credentials"] = False
    del config["exposed_headers"], config["max_age"]
    with answering(document, environment, tmp_path, {}) as gateway:
        headers = _get(gateway, Origin="http://localhost:3000").headers

    assert [name for name in headers if name.startswith("access-control-")] == ["access-control-allow-origin"]


@pytest.mark.parametrize(
    ("sent", "received"),
    [
        ({}, {"x-kept": "new", "x-gone": None, "x-again": "new"}),
        ({"X-Kept": "old", "X-Gone": "old", "X-Again": "old"}, {"x-kept": "old", "x-gone": None, "x-again": None}),
    ],
)
def test_headers_are_removed_and_added_where_the_upstream_sent_none(
    document: Document,
    environment: dict[str, str],
    tmp_path: Path,
    sent: dict[str, str],
    received: dict[str, str | None],
) -> None:
    """In Kong, a removed header counts as present, so it is not added again."""
    config = config_of(document, "response-transformer")
    config |= {"remove": {"headers": ["X-Gone", "X-Again"]}, "add": {"headers": ["X-Kept:new", "X-Again:new"]}}
    with answering(document, environment, tmp_path, sent) as gateway:
        headers = _get(gateway).headers

    assert {name: headers.get(name) for name in received} == received
