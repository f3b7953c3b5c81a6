"""Credentials for encrypted connections, from PEM files."""

from pathlib import Path

import grpc

from statecast_client.errors import InvalidError


def credentials(
    ca: Path | None = None, certificate: Path | None = None, key: Path | None = None
) -> grpc.ChannelCredentials:
    """Returns credentials that trust `ca`, or the system's, and show a certificate when it and its key are given.

    Raises InvalidError naming the file that cannot be read.
    """
    if (certificate is None) != (key is None):
        raise InvalidError("a certificate and its key go together: give both, or neither")
    return grpc.ssl_channel_credentials(_content(ca), _content(key), _content(certificate))


def _content(file: Path | None) -> bytes | None:
    if file is None:
        return None
    try:
        return file.read_bytes()
    except OSError as error:
        raise InvalidError(f"{file} cannot be read: {error.strerror}") from error
