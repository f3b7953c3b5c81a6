"""TLS on the edge's own port and towards the query service: reads the files of the settings, and checks them."""

import ssl
from dataclasses import dataclass
from pathlib import Path

import grpc

from ws_edge.errors import SettingsError
from ws_edge.settings import Settings, variable


@dataclass(frozen=True)
class PortTls:
    """What the edge's own port shows, and whose certificates it asks for: files with PEM."""

    certificate: Path
    key: Path
    client_ca: Path | None

    @property
    def mutual(self) -> bool:
        """Whether nobody is let in without a certificate of the CA."""
        return self.client_ca is not None


@dataclass(frozen=True)
class Tls:
    """Both sides of an edge; None where there is no TLS."""

    port: PortTls | None = None
    query: grpc.ChannelCredentials | None = None


def read(settings: Settings) -> Tls:
    """Reads what the settings name. Raises SettingsError naming the variable that is wrong."""
    return Tls(port_tls(settings), query_tls(settings))


def port_tls(settings: Settings) -> PortTls | None:
    """Returns what the edge's port needs; None without TLS. Raises SettingsError naming the variable that is wrong."""
    if settings.tls_client_ca and not settings.tls_certificate:
        raise SettingsError(f"{variable('tls_client_ca')} needs {variable('tls_certificate')}: set it too")
    if not _pair(settings, "tls_certificate", "tls_key"):
        return None
    if settings.tls_client_ca is not None:
        _certificates("tls_client_ca", settings.tls_client_ca)
    assert settings.tls_certificate is not None  # noqa: S101  the pair was checked
    assert settings.tls_key is not None  # noqa: S101  as above
    return PortTls(settings.tls_certificate, settings.tls_key, settings.tls_client_ca)


def query_tls(settings: Settings) -> grpc.ChannelCredentials | None:
    """Returns what connections to the query service need; None without TLS. Raises SettingsError as `port_tls` does."""
    if settings.query_tls_ca is None:
        for name in ("query_tls_certificate", "query_tls_key"):
            if getattr(settings, name) is not None:
                raise SettingsError(f"{variable(name)} needs {variable('query_tls_ca')}: set it too")
        return None
    ca = _certificates("query_tls_ca", settings.query_tls_ca)
    certificate, key = _pair(settings, "query_tls_certificate", "query_tls_key") or (None, None)
    return grpc.ssl_channel_credentials(ca, key, certificate)


def _pair(settings: Settings, certificate: str, key: str) -> tuple[bytes, bytes] | None:
    """The contents of a certificate and its key, which must fit; None when both are missing."""
    certificate_file, key_file = getattr(settings, certificate), getattr(settings, key)
    if certificate_file is None and key_file is None:
        return None
    if certificate_file is None or key_file is None:
        missing = certificate if certificate_file is None else key
        raise SettingsError(f"{variable(missing)} is missing: a certificate and its key go together")
    pair = _certificates(certificate, certificate_file), _content(key, key_file)
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(certificate_file, key_file, password="")
    except OSError as error:
        problem = f"it is not the key of {certificate_file}, or not PEM without a password ({error})"
        raise SettingsError(f"{variable(key)}={key_file}: {problem}") from error
    return pair


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
