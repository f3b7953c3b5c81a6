"""TLS on the public port, and mutual TLS between instances: reads the files of the settings, and checks them."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from query_service.errors import SettingsError
from query_service.settings import Settings, variable


@dataclass(frozen=True)
class Tls:
    """What one side of a connection shows, and whose certificates it accepts; all as PEM."""

    certificate: bytes
    key: bytes
    ca: bytes | None

    def as_server(self) -> grpc.ServerCredentials:
        """Returns the credentials of a port. With a CA, a caller without a certificate of it is refused."""
        return grpc.ssl_server_credentials(
            [(self.key, self.certificate)], root_certificates=self.ca, require_client_auth=self.ca is not None
        )

    def as_client(self) -> grpc.ChannelCredentials:
        """Returns the credentials of a connection to a port whose certificate is of the CA."""
        return grpc.ssl_channel_credentials(self.ca, self.key, self.certificate)


def public_tls(settings: Settings) -> Tls | None:
    """Returns what the public port needs; None without TLS. Raises SettingsError naming the variable that is wrong."""
    if settings.tls_client_ca and not settings.tls_certificate:
        raise SettingsError(f"{variable('tls_client_ca')} needs {variable('tls_certificate')}: set it too")
    return _read(settings, "tls_certificate", "tls_key", "tls_client_ca")


def shard_tls(settings: Settings) -> Tls | None:
    """Returns what the internal port and the connections to peers need; None without TLS. Raises as `public_tls`."""
    names = ("shard_tls_certificate", "shard_tls_key", "shard_tls_ca")
    missing = [name for name in names if getattr(settings, name) is None]
    if 0 < len(missing) < len(names):
        raise SettingsError(f"{variable(missing[0])} is missing: between instances TLS is mutual and needs all three")
    return _read(settings, *names)


def _read(settings: Settings, certificate: str, key: str, ca: str) -> Tls | None:
    certificate_file, key_file, ca_file = (getattr(settings, name) for name in (certificate, key, ca))
    if certificate_file is None and key_file is None:
        return None
    if certificate_file is None or key_file is None:
        missing = certificate if certificate_file is None else key
        raise SettingsError(f"{variable(missing)} is missing: a certificate and its key go together")
    tls = Tls(
        _certificates(certificate, certificate_file),
        _content(key, key_file),
        None if ca_file is None else _certificates(ca, ca_file),
    )
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate_file, key_file, password="")
    except OSError as error:
        problem = f"it is not the key of {certificate_file}, or not PEM without a password ({error})"
        raise SettingsError(f"{variable(key)}={key_file}: {problem}") from error
    return tls


def _certificates(name: str, file: Path) -> bytes:
    content = _content(name, file)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT).load_verify_locations(cadata=content.decode("ascii"))
    except (ssl.SSLError, ValueError) as error:
        raise SettingsError(f"{variable(name)}={file}: it is not a certificate as PEM ({error})") from error
    return content


def _content(name: str, file: Path) -> bytes:
    try:
        return file.read_bytes()
    except OSError as error:
        raise SettingsError(f"{variable(name)}={file}: it cannot be read: {error.strerror}") from error
