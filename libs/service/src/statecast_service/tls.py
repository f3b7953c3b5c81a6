"""TLS from PEM files that settings name: reads and checks them, and makes credentials for gRPC.

Three shapes: a port (`server_tls`), connections to one (`channel_tls`), and both sides between equals (`mutual_tls`).
Each takes the names of settings' fields, returns None when none of them is set, and raises SettingsError that names the
wrong variable.
"""

import ssl
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path

import grpc
from pydantic import Field

from statecast_service.errors import SettingsError
from statecast_service.settings import ServiceSettings


class PortSettings(ServiceSettings):
    """Of a service that others call: without TLS only on this machine, unless the network is said to be safe."""

    host: str = Field(default="127.0.0.1", min_length=1, description="Address to listen on; beyond loopback with TLS.")
    allow_plaintext: bool = Field(
        default=False, description="Listens for others without TLS, too: where the network is closed, or encrypts."
    )


@dataclass(frozen=True)
class Pem:
    """A file, and its content when it was checked."""

    file: Path
    content: bytes


@dataclass(frozen=True)
class Tls:
    """The certificate and key of one side of a connection, and the CA by which it verifies the other side."""

    certificate: Pem | None
    key: Pem | None
    ca: Pem | None

    @property
    def mutual(self) -> bool:
        """Whether a port accepts only clients with a certificate of the CA."""
        return self.ca is not None

    def server_credentials(self) -> grpc.ServerCredentials:
        """Returns the credentials of a port, which needs a certificate. Raises ValueError without one."""
        if self.certificate is None or self.key is None:
            raise ValueError("a port needs a certificate and its key")
        pairs = [(self.key.content, self.certificate.content)]
        return grpc.ssl_server_credentials(pairs, _content(self.ca), require_client_auth=self.mutual)

    def channel_credentials(self) -> grpc.ChannelCredentials:
        """Returns the credentials of a connection to a port with a certificate of the CA."""
        return grpc.ssl_channel_credentials(_content(self.ca), _content(self.key), _content(self.certificate))


def server_tls(settings: PortSettings, certificate: str, key: str, client_ca: str) -> Tls | None:
    """Returns the TLS of a port; with a client CA, callers must show a certificate of it."""
    if _file(settings, client_ca) and not _file(settings, certificate):
        raise SettingsError(f"{settings.variable(client_ca)} needs {settings.variable(certificate)}: set it too")
    _refuse_plaintext(settings, certificate)
    return _read(settings, certificate, key, client_ca)


def channel_tls(settings: ServiceSettings, ca: str, certificate: str, key: str) -> Tls | None:
    """Returns the TLS of connections; the certificate is for ports that ask for one."""
    if not _file(settings, ca):
        for name in filter(lambda name: _file(settings, name), (certificate, key)):
            raise SettingsError(f"{settings.variable(name)} needs {settings.variable(ca)}: set it too")
    return _read(settings, certificate, key, ca)


def mutual_tls(settings: PortSettings, certificate: str, key: str, ca: str) -> Tls | None:
    """Returns the TLS of equals, who are both sides and all have a certificate of one CA."""
    names = (certificate, key, ca)
    missing = [name for name in names if not _file(settings, name)]
    if 0 < len(missing) < len(names):
        raise SettingsError(f"{settings.variable(missing[0])} is missing: mutual TLS needs all three files")
    _refuse_plaintext(settings, certificate)
    return _read(settings, *names)


def is_loopback(host: str) -> bool:
    """Returns whether a port of that host can be reached from this machine only."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


def _refuse_plaintext(settings: PortSettings, certificate: str) -> None:
    if not (_file(settings, certificate) or settings.allow_plaintext or is_loopback(settings.host)):
        name, allow = settings.variable(certificate), settings.variable("allow_plaintext")
        host = f"{settings.variable('host')}={settings.host}"
        raise SettingsError(f"{host} needs TLS: set {name}, or {allow}=true where the network is closed or encrypts")


def _read(settings: ServiceSettings, certificate: str, key: str, ca: str) -> Tls | None:
    if not any(_file(settings, name) for name in (certificate, key, ca)):
        return None
    for name, other in ((certificate, key), (key, certificate)):
        if _file(settings, other) and not _file(settings, name):
            raise SettingsError(f"{settings.variable(name)} is missing: a certificate and its key go together")
    tls = Tls(*(_pem(settings, name, has_certificates=name != key) for name in (certificate, key, ca)))
    if tls.certificate and tls.key:
        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(tls.certificate.file, tls.key.file, password="")
        except OSError as error:
            problem = f"it is not the key of {tls.certificate.file}, or not PEM without a password ({error})"
            raise SettingsError(f"{settings.variable(key)}={tls.key.file}: {problem}") from error
    return tls


def _file(settings: ServiceSettings, name: str) -> Path | None:
    file: Path | None = getattr(settings, name)
    return file


def _pem(settings: ServiceSettings, name: str, *, has_certificates: bool) -> Pem | None:
    file = _file(settings, name)
    if file is None:
        return None
    try:
        pem = Pem(file, file.read_bytes())
        if has_certificates:
            # A system's bundle has comments between its certificates, also such that are not ASCII.
            text = pem.content.decode("ascii", "replace").replace("\ufffd", "?")
            ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=text)
    except (ssl.SSLError, ValueError) as error:
        problem = f"it is not a certificate as PEM ({error})"
        raise SettingsError(f"{settings.variable(name)}={file}: {problem}") from error
    except OSError as error:
        raise SettingsError(f"{settings.variable(name)}={file}: it cannot be read: {error.strerror}") from error
    return pem


def _content(pem: Pem | None) -> bytes | None:
    return None if pem is None else pem.content
