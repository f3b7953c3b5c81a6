"""The script that makes the credentials of compose.yaml, with the openssl of this machine."""

import os
import ssl
import subprocess
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

SCRIPT = Path(__file__).parents[1] / "credentials.sh"
NAMES = ("certificate.pem", "key.pem", "secret")


def made(directory: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """Runs the script with one directory for all files, and returns its result."""
    command = ["sh", str(SCRIPT), str(directory), str(directory)]
    return subprocess.run(command, env=os.environ | variables, capture_output=True, text=True, check=False)


def contents(directory: Path) -> dict[str, bytes]:
    return {each.name: each.read_bytes() for each in directory.iterdir()}


def test_a_client_that_trusts_the_certificate_reaches_localhost(tmp_path: Path) -> None:
    made(tmp_path)
    server = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    server.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")
    client = ssl.create_default_context(cafile=tmp_path / "certificate.pem")
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname="localhost"),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while ends:
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)

    certificate = x509.load_pem_x509_certificate((tmp_path / "certificate.pem").read_bytes())
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert {str(each) for each in names.get_values_for_type(x509.IPAddress)} == {"127.0.0.1", "::1"}


def test_the_secret_is_long_enough_for_an_edge_and_never_the_same(tmp_path: Path) -> None:
    secrets = set()
    for name in ("first", "second"):
        (tmp_path / name).mkdir()
        made(tmp_path / name)
        secrets.add((tmp_path / name / "secret").read_text().strip())

    assert [len(each) for each in secrets] == [32, 32]


def test_what_is_there_stays_and_the_users_of_all_containers_can_read_it(tmp_path: Path) -> None:
    made(tmp_path)
    before = contents(tmp_path)
    again = made(tmp_path)

    assert again.returncode == 0
    assert contents(tmp_path) == before
    assert sorted(before) == sorted(NAMES)
    assert all((tmp_path / name).stat().st_mode & 0o044 == 0o044 for name in NAMES)


@pytest.mark.parametrize("missing", NAMES)
def test_what_is_missing_is_made_anew(missing: str, tmp_path: Path) -> None:
    made(tmp_path)
    (tmp_path / missing).unlink()
    made(tmp_path)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)

    assert sorted(contents(tmp_path)) == sorted(NAMES)
    tls.load_cert_chain(tmp_path / "certificate.pem", tmp_path / "key.pem")


def test_a_certificate_with_less_than_a_week_is_replaced_and_the_secret_stays(tmp_path: Path) -> None:
    made(tmp_path)
    secret = (tmp_path / "secret").read_text()
    short = ["openssl", "req", "-x509", "-key", "key.pem", "-subj", "/CN=old", "-days", "6", "-out", "certificate.pem"]
    subprocess.run(short, cwd=tmp_path, check=True)
    made(tmp_path)
    certificate = x509.load_pem_x509_certificate((tmp_path / "certificate.pem").read_bytes())

    assert certificate.not_valid_after_utc - datetime.now(UTC) > timedelta(days=300)
    assert (tmp_path / "secret").read_text() == secret


@pytest.mark.parametrize(
    "secret",
    ["s" * 31, f"{'s' * 32},{'t' * 32}", f"{'s' * 32} ", f"{'s' * 16} {'s' * 16}", "ß" * 32, f"{'s' * 32}\n"],
    ids=["short", "two", "blank at the end", "blank", "no ASCII", "line break"],
)
def test_a_secret_that_gateway_and_edges_would_not_read_alike_is_refused(secret: str, tmp_path: Path) -> None:
    refused = made(tmp_path, GATEWAY_SECRET=secret)

    assert refused.returncode == 1
    assert refused.stderr.startswith("credentials.sh: GATEWAY_SECRET must have 32 characters or more")
    assert secret not in refused.stderr
    assert contents(tmp_path) == {}


def test_a_secret_that_is_set_may_have_the_characters_of_a_shell(tmp_path: Path) -> None:
    assert made(tmp_path, GATEWAY_SECRET="$(id):#'\"\\`*" * 4).returncode == 0


@pytest.mark.parametrize("name", ["GATEWAY_TLS_CERTIFICATE", "GATEWAY_TLS_KEY"])
def test_half_a_pair_is_refused_by_name(name: str, tmp_path: Path) -> None:
    refused = made(tmp_path, **{name: "PEM"})

    assert refused.returncode == 1
    assert refused.stderr.startswith("credentials.sh: GATEWAY_TLS_CERTIFICATE and GATEWAY_TLS_KEY belong together")
    assert contents(tmp_path) == {}
