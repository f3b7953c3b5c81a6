"""Certificates of the settings are checked before anything is started."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import trustme

from statecast_service.errors import SettingsError
from statecast_service.tls import Tls, channel_tls, mutual_tls, server_tls

if TYPE_CHECKING:
    from conftest import Settings

Files = dict[str, Path]
FIELDS = ("tls_certificate", "tls_key", "tls_client_ca")
READERS: dict[str, Callable[["Settings"], Tls | None]] = {
    "server": partial(server_tls, certificate=FIELDS[0], key=FIELDS[1], client_ca=FIELDS[2]),
    "channel": partial(channel_tls, certificate=FIELDS[0], key=FIELDS[1], ca=FIELDS[2]),
    "mutual": partial(mutual_tls, certificate=FIELDS[0], key=FIELDS[1], ca=FIELDS[2]),
}
PAIR = {"tls_certificate": "certificate", "tls_key": "key"}
ALL = {**PAIR, "tls_client_ca": "ca"}


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    """A certificate, its key and its CA, as PEM files, and two that are of no use."""
    directory = tmp_path_factory.mktemp("tls")
    authority = trustme.CA()
    issued = authority.issue_cert("127.0.0.1")
    contents = {
        "certificate": b"".join(blob.bytes() for blob in issued.cert_chain_pems),
        "key": issued.private_key_pem.bytes(),
        "ca": authority.cert_pem.bytes(),
        "bundle": "# Főtanúsítvány\n".encode() + authority.cert_pem.bytes(),
        "rubbish": b"\xffnot a certificate",
    }
    for name, content in contents.items():
        (directory / name).write_bytes(content)
    return {name: directory / name for name in (*contents, "missing")}


def settings_of(settings_class: "type[Settings]", files: Files, fields: dict[str, str]) -> "Settings":
    return settings_class.model_validate({field: files[file] for field, file in fields.items()})


@pytest.mark.parametrize("reader", READERS)
def test_without_files_there_is_no_tls(reader: str, settings_class: "type[Settings]") -> None:
    assert READERS[reader](settings_class()) is None


@pytest.mark.parametrize(
    ("reader", "fields"),
    [
        ("server", PAIR),
        ("server", ALL),
        ("channel", {"tls_client_ca": "ca"}),
        ("channel", {"tls_client_ca": "bundle"}),
        ("channel", ALL),
        ("mutual", ALL),
    ],
)
def test_what_is_complete_gives_credentials(
    reader: str, fields: dict[str, str], settings_class: "type[Settings]", files: Files
) -> None:
    tls = READERS[reader](settings_of(settings_class, files, fields))

    assert tls is not None
    assert tls.mutual == ("tls_client_ca" in fields)
    assert tls.channel_credentials() is not None
    if tls.certificate is not None:
        assert tls.certificate.file == files["certificate"]
        assert tls.certificate.content == files["certificate"].read_bytes()
        assert tls.server_credentials() is not None


def test_a_port_cannot_do_without_a_certificate(settings_class: "type[Settings]", files: Files) -> None:
    tls = READERS["channel"](settings_of(settings_class, files, {"tls_client_ca": "ca"}))

    assert tls is not None
    with pytest.raises(ValueError, match="needs a certificate"):
        tls.server_credentials()


@pytest.mark.parametrize(
    ("reader", "fields", "problem"),
    [
        ("server", {"tls_certificate": "certificate"}, "KEY is missing"),
        ("server", {"tls_key": "key"}, "CERTIFICATE is missing"),
        ("server", {"tls_client_ca": "ca"}, "CLIENT_CA needs DEMO_TLS_CERTIFICATE"),
        ("server", {**PAIR, "tls_certificate": "missing"}, "CERTIFICATE=.*missing: it cannot be read: No such"),
        ("server", {**PAIR, "tls_key": "missing"}, "KEY=.*missing: it cannot be read"),
        ("server", {**PAIR, "tls_certificate": "rubbish"}, "CERTIFICATE=.*: it is not a certificate"),
        ("server", {**PAIR, "tls_certificate": "key"}, "CERTIFICATE=.*: it is not a certificate"),
        ("server", {**PAIR, "tls_key": "rubbish"}, "KEY=.*: it is not the key of"),
        ("server", {**PAIR, "tls_certificate": "ca"}, "KEY=.*: it is not the key of .*ca"),
        ("server", {**ALL, "tls_client_ca": "rubbish"}, "CLIENT_CA=.*: it is not a certificate"),
        ("channel", PAIR, "CERTIFICATE needs DEMO_TLS_CLIENT_CA"),
        ("channel", {"tls_key": "key"}, "KEY needs DEMO_TLS_CLIENT_CA"),
        ("channel", {**ALL, "tls_client_ca": "rubbish"}, "CLIENT_CA=.*: it is not a certificate"),
        ("mutual", PAIR, "CLIENT_CA is missing"),
        ("mutual", {"tls_client_ca": "ca"}, "CERTIFICATE is missing"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(
    reader: str, fields: dict[str, str], problem: str, settings_class: "type[Settings]", files: Files
) -> None:
    with pytest.raises(SettingsError, match=f"^DEMO_TLS_{problem}") as caught:
        READERS[reader](settings_of(settings_class, files, fields))

    assert len(str(caught.value).splitlines()) == 1


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.0.2.1", "edge-1.example.org"])
@pytest.mark.parametrize("reader", ["server", "mutual"])
def test_beyond_this_machine_a_port_needs_tls(reader: str, host: str, settings_class: "type[Settings]") -> None:
    with pytest.raises(SettingsError, match=f"^DEMO_HOST={host} needs TLS: set DEMO_TLS_CERTIFICATE, or DEMO_ALLOW_PL"):
        READERS[reader](settings_class(host=host))

    assert READERS[reader](settings_class(host=host, allow_plaintext=True)) is None


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1", "localhost"])
def test_on_this_machine_a_port_may_do_without_tls(host: str, settings_class: "type[Settings]") -> None:
    assert READERS["server"](settings_class(host=host)) is None
