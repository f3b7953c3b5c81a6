"""Browsers open sockets from the sites that may, and other clients from wherever they are."""

from typing import Any

import pytest

from ws_edge.access.origins import Origins
from ws_edge.errors import OriginRefusedError

SITE = (b"origin", b"https://app.example.org")


def scope(*headers: tuple[bytes, bytes]) -> dict[str, Any]:
    return {"headers": headers}


def test_clients_that_are_no_browsers_send_no_origin() -> None:
    Origins([]).check(scope((b"host", b"ws-edge-1:8080")))
    Origins(["https://app.example.org"]).check(scope())


@pytest.mark.parametrize(
    "headers",
    [
        [(b"host", b"app.example.org:8443")],
        [(b"host", b"ws-edge-1:8080"), (b"x-forwarded-host", b"app.example.org")],
        [(b"x-forwarded-host", b"APP.example.org")],
    ],
)
def test_without_a_list_the_site_is_the_host_that_was_asked_for(headers: list[tuple[bytes, bytes]]) -> None:
    Origins([]).check(scope(SITE, *headers))


@pytest.mark.parametrize(
    "headers",
    [
        [],
        [(b"host", b"api.example.org")],
        [(b"host", b"app.example.org"), (b"x-forwarded-host", b"api.example.org")],
        [(b"x-forwarded-host", b"app.example.org"), (b"x-forwarded-host", b"api.example.org")],
    ],
)
def test_other_sites_are_refused(headers: list[tuple[bytes, bytes]]) -> None:
    with pytest.raises(OriginRefusedError, match="WS_EDGE_ORIGINS"):
        Origins([]).check(scope(SITE, *headers))


@pytest.mark.parametrize("origin", [b"null", b"", b"https://", b"https://[", b"app.example.org"])
def test_an_origin_that_names_no_host_is_refused(origin: bytes) -> None:
    with pytest.raises(OriginRefusedError):
        Origins([]).check(scope((b"origin", origin), (b"host", b"")))


def test_a_list_counts_alone_and_to_the_letter() -> None:
    origins = Origins(["https://app.example.org"])
    origins.check(scope((b"origin", b"https://APP.example.org"), (b"host", b"api.example.org")))

    for other in (b"http://app.example.org", b"https://app.example.org:8443", b"https://api.example.org", b"null"):
        with pytest.raises(OriginRefusedError):
            origins.check(scope((b"origin", other), (b"host", b"api.example.org")))


def test_a_second_origin_must_be_good_as_well() -> None:
    with pytest.raises(OriginRefusedError):
        Origins(["https://app.example.org"]).check(scope(SITE, (b"origin", b"https://evil.example")))


def test_a_star_allows_all() -> None:
    Origins(["*"]).check(scope((b"origin", b"null")))
