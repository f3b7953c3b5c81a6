"""Credentials for encrypted connections, from PEM files."""

import ssl
from pathlib import Path

import grpc

from statecast_client.errors import InvalidError


def credentials(
    ca: Path | None = None, certificate: Path | None = None, key: Path | None = None
) -> grpc.ChannelCredentials:
    """Returns credentials that trust `ca`, or the system's, and present a certificate when there is one.

    Raises InvalidError naming the file that cannot be read.
    """
    _check_pair(certificate, key)
    return grpc.ssl_channel_credentials(_content(ca), _content(key), _content(certificate))


def context(ca: Path | None = None, certificate: Path | None = None, key: Path | None = None) -> ssl.SSLContext:
    """Returns the same for sockets. Raises InvalidError as well."""
    _check_pair(certificate, key)
    try:
        made = ssl.create_default_context(cafile=ca)
        if certificate is not None:
            made.load_cert_chain(certificate, key)
    except OSError as error:
        raise InvalidError(f"the certificates cannot be read: {error.strerror or error}") from error
    return made


def _check_pair(certificate: Path | None, key: Path | None) -> None:
    if (certificate is None) != (key is None):
        raise InvalidError("a certificate and its key go together: give both, or neither")


def _content(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidError(f"{file} cannot be read: {error.strerror}") from error
