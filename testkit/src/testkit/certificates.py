"""The certificates of the local gateway: an authority of its own, and a certificate for this machine."""

import os
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import trustme
from cryptography import x509

LIFETIME = timedelta(days=365)
RENEW_BEFORE = timedelta(days=7)


@dataclass(frozen=True)
class Certificates:
    """The files of the authority's certificate, the gateway's certificate and its private key, each as PEM."""

    directory: Path

    @property
    def authority(self) -> Path:
        """The CA that clients of the gateway must trust. Its private key is discarded, so it can sign nothing else."""
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
        """Issues the certificates when there are none, or when they are about to expire. `now` has a time zone."""
        if not self._valid(now):
            self._issue(now)

    def _valid(self, now: datetime) -> bool:
        if not all(path.exists() for path in (self.authority, self.certificate, self.key)):
            return False
        certificate = x509.load_pem_x509_certificate(self.certificate.read_bytes())
        return certificate.not_valid_after_utc - RENEW_BEFORE > now

    def _issue(self, now: datetime) -> None:
        authority = trustme.CA(organization_name="Statecast local authority")
        issued = authority.issue_cert(
            *("localhost", "127.0.0.1", "::1"), not_before=now - timedelta(days=1), not_after=now + LIFETIME
        )
        self.authority.write_bytes(authority.cert_pem.bytes())
        self.certificate.write_bytes(issued.cert_chain_pems[0].bytes())
        with os.fdopen(os.open(self.key, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600), "wb") as file:
            file.write(issued.private_key_pem.bytes())


class PemFiles:
    """A certificate for 127.0.0.1, its key and its CA as PEM files, beside one that is missing and one that is none."""

    def __init__(self, directory: Path, authority: trustme.CA) -> None:
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
