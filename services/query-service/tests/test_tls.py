"""Certificates of the settings are checked before anything is started."""

from pathlib import Path

import pytest
import trustme

from query_service.errors import SettingsError
from query_service.settings import Settings
from query_service.tls import public_tls, shard_tls

PREFIX = "QUERY_SERVICE_"


class Files:
    """A certificate, its key and its CA, as PEM files."""

    def __init__(self, directory: Path) -> None:
        authority = trustme.CA()
        issued = authority.issue_cert("127.0.0.1")
        self.certificate = directory / "certificate.pem"
        self.key = directory / "key.pem"
        self.ca = directory / "ca.pem"
        self.missing = directory / "missing.pem"
        self.rubbish = directory / "rubbish.pem"
        self.certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        self.key.write_bytes(issued.private_key_pem.bytes())
        self.ca.write_bytes(authority.cert_pem.bytes())
        self.rubbish.write_bytes(b"\xffnot a certificate")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("tls"))


def test_without_files_there_is_no_tls() -> None:
    assert public_tls(Settings()) is None
    assert shard_tls(Settings()) is None


def test_a_certificate_and_its_key_are_enough_for_the_public_port(files: Files) -> None:
    tls = public_tls(Settings(tls_certificate=files.certificate, tls_key=files.key))

    assert tls is not None
    assert tls.certificate == files.certificate.read_bytes()
    assert tls.ca is None
    assert tls.as_server() is not None


def test_between_instances_all_three_make_both_ends(files: Files) -> None:
    settings = Settings(shard_tls_certificate=files.certificate, shard_tls_key=files.key, shard_tls_ca=files.ca)
    tls = shard_tls(settings)

    assert tls is not None
    assert tls.ca == files.ca.read_bytes()
    assert tls.as_client() is not None


@pytest.mark.parametrize(
    ("given", "named"),
    [
        ({"tls_certificate": "certificate"}, "TLS_KEY is missing"),
        ({"tls_key": "key"}, "TLS_CERTIFICATE is missing"),
        ({"tls_client_ca": "ca"}, "TLS_CLIENT_CA needs QUERY_SERVICE_TLS_CERTIFICATE"),
        ({"tls_certificate": "missing", "tls_key": "key"}, "TLS_CERTIFICATE=.*missing.pem: it cannot be read: No such"),
        ({"tls_certificate": "certificate", "tls_key": "missing"}, "TLS_KEY=.*missing.pem: it cannot be read"),
        ({"tls_certificate": "rubbish", "tls_key": "key"}, "TLS_CERTIFICATE=.*: it is not a certificate"),
        ({"tls_certificate": "key", "tls_key": "key"}, "TLS_CERTIFICATE=.*: it is not a certificate"),
        ({"tls_certificate": "certificate", "tls_key": "rubbish"}, "TLS_KEY=.*: it is not the key of"),
        ({"tls_certificate": "ca", "tls_key": "key"}, "TLS_KEY=.*: it is not the key of .*ca.pem"),
        (
            {"tls_certificate": "certificate", "tls_key": "key", "tls_client_ca": "rubbish"},
            "TLS_CLIENT_CA=.*: it is not a certificate",
        ),
        ({"shard_tls_certificate": "certificate", "shard_tls_key": "key"}, "SHARD_TLS_CA is missing"),
        ({"shard_tls_ca": "ca"}, "SHARD_TLS_CERTIFICATE is missing"),
    ],
)
def test_what_is_wrong_is_named_in_one_line(files: Files, given: dict[str, str], named: str) -> None:
    settings = Settings(**{name: getattr(files, file) for name, file in given.items()})

    with pytest.raises(SettingsError, match=PREFIX + named) as raised:
        (public_tls if any(name.startswith("tls") for name in given) else shard_tls)(settings)

    assert len(str(raised.value).splitlines()) == 1
