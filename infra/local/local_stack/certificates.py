"""Makes the certificates of the local gateway: an authority of its own, and a certificate for this machine."""

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFE = timedelta(days=365)
RENEW_BEFORE = timedelta(days=7)


@dataclass(frozen=True)
class Certificates:
    """Where the authority's certificate, the gateway's certificate and its private key are, each as PEM."""

    directory: Path

    @property
    def authority(self) -> Path:
        """What a client of the gateway must trust. Its private key is thrown away, so that it signs nothing else."""
        return self.directory / "ca.pem"

    @property
    def certificate(self) -> Path:
        """The certificate of the gateway, for localhost and 127.0.0.1."""
        return self.directory / "gateway.pem"

    @property
    def key(self) -> Path:
        """The private key of the gateway; only the owner may read it."""
        return self.directory / "gateway.key"

    def ensure(self, now: datetime) -> None:
        """Makes the certificates when there are none, or when they are about to expire. `now` is aware."""
        if not self._valid(now):
            self._make(now)

    def _valid(self, now: datetime) -> bool:
        if not all(path.exists() for path in (self.authority, self.certificate, self.key)):
            return False
        certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        return certificate.not_valid_after_utc - RENEW_BEFORE > now

    def _make(self, now: datetime) -> None:
        authority_key, key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
        authority_name = _name("Statecast local authority")
        authority = (
            _certificate(authority_name, authority_name, authority_key.public_key(), authority_key.public_key(), now)
            .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
            .add_extension(_key_usage(signs_certificates=True), critical=True)
            .sign(authority_key, hashes.SHA256())
        )
        certificate = (
            _certificate(_name("localhost"), authority_name, key.public_key(), authority_key.public_key(), now)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_key_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(_names_of_this_machine(), critical=False)
            .sign(authority_key, hashes.SHA256())
        )
        self.authority.write_bytes(authority.public_bytes(serialization.Encoding.PEM))
        self.certificate.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
        with os.fdopen(os.open(self.key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(
                key.private_bytes(
                    serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
                )
            )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _names_of_this_machine() -> x509.SubjectAlternativeName:
    addresses = [x509.IPAddress(ip_address(each)) for each in ("127.0.0.1", "::1")]
    return x509.SubjectAlternativeName([x509.DNSName("localhost"), *addresses])


def _certificate(
    subject: x509.Name,
    issuer: x509.Name,
    public_key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    now: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(public_key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + LIFE)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(public_key), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False)
    )


def _key_usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        encipher_only=False,
        decipher_only=False,
    )
