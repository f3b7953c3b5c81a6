"""The certificates of the local gateway."""

import ssl
import stat
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509

from testkit.certificates import LIFETIME, Certificates

NOW = datetime(2026, 1, 2, tzinfo=UTC)


@pytest.fixture
def certificates(tmp_path: Path) -> Certificates:
    gateway_certificates = Certificates(tmp_path)
    gateway_certificates.ensure(NOW)
    return gateway_certificates


def test_the_authority_has_signed_the_gateways_certificate(certificates: Certificates) -> None:
    authority = x509.load_pem_x509_certificate(certificates.authority.read_bytes())
    certificate = x509.load_pem_x509_certificate(certificates.certificate.read_bytes())

    certificate.verify_directly_issued_by(authority)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]


def test_a_tls_server_can_use_them(certificates: Certificates) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(certificates.authority))

    context.load_cert_chain(certificates.certificate, certificates.key)

    assert len(context.get_ca_certs()) == 1


def test_only_the_owner_reads_the_key(certificates: Certificates) -> None:
    assert stat.S_IMODE(certificates.key.stat().st_mode) == 0o600


def test_they_stay_while_they_are_valid(certificates: Certificates) -> None:
    before = certificates.certificate.read_bytes()

    certificates.ensure(NOW + timedelta(days=30))

    assert certificates.certificate.read_bytes() == before


def test_they_are_renewed_before_they_expire(certificates: Certificates) -> None:
    before = certificates.certificate.read_bytes()

    certificates.ensure(NOW + LIFETIME - timedelta(days=1))

    assert certificates.certificate.read_bytes() != before


def test_they_are_made_again_when_one_is_missing(certificates: Certificates) -> None:
    certificates.key.unlink()

    certificates.ensure(NOW)

    assert certificates.key.exists()
