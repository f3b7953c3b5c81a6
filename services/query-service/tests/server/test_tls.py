"""Certificates of the settings are checked before anything is started."""

import pytest
import trustme

from query_service.server.server import public_tls, shard_tls
from query_service.settings import Settings
from statecast_service.errors import SettingsError
from testkit.certificates import PemFiles

PREFIX = "QUERY_SERVICE_"


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> PemFiles:
    return PemFiles(tmp_path_factory.mktemp("tls"), trustme.CA())


def test_without_files_there_is_no_tls() -> None:
    assert public_tls(Settings()) is None
    assert shard_tls(Settings()) is None


def test_a_certificate_and_its_key_are_enough_for_the_public_port(files: PemFiles) -> None:
    tls = public_tls(Settings(tls_certificate=files.certificate, tls_key=files.key))

    assert tls is not None
    assert tls.certificate is not None
    assert tls.certificate.content == files.certificate.read_bytes()
    assert tls.ca is None
    assert tls.server_credentials() is not None


def test_between_instances_all_three_make_both_ends(files: PemFiles) -> None:
    settings = Settings(shard_tls_certificate=files.certificate, shard_tls_key=files.key, shard_tls_ca=files.ca)
    tls = shard_tls(settings)

    assert tls is not None
    assert tls.ca is not None
    assert tls.ca.content == files.ca.read_bytes()
    assert tls.channel_credentials() is not None


@pytest.mark.parametrize(
    ("fields", "named"),
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
def test_the_wrong_variable_is_named_in_one_line(files: PemFiles, fields: dict[str, str], named: str) -> None:
    settings = Settings(**{name: getattr(files, file) for name, file in fields.items()})

    with pytest.raises(SettingsError, match=PREFIX + named) as raised:
        (public_tls if any(name.startswith("tls") for name in fields) else shard_tls)(settings)

    assert len(str(raised.value).splitlines()) == 1
