"""Reads what the gateway shows on TLS: one certificate, for every name."""

from dataclasses import dataclass

from kong_envoy.environment import Environment, dereferenced
from kong_envoy.errors import UnsupportedError
from kong_envoy.fields import Table, check, entries, nested, only, optional, required, text, texts

CERTIFICATE: Table = {
    "id": required(text),
    "cert": required(text),
    "key": required(text),
    "tags": optional(texts),
}
SNI: Table = {"name": required(only("*")), "certificate": required(nested), "tags": optional(texts)}
REFERENCE: Table = {"id": required(text)}


@dataclass(frozen=True)
class Certificate:
    """A certificate chain and its private key, both PEM."""

    chain: str
    key: str


def read_certificate(certificates: object, snis: object, environment: Environment) -> Certificate:
    """The certificate that the one sni names. Raises UnsupportedError when there is another number of either."""
    read = [(place, check(place, each, CERTIFICATE)) for place, each in entries("certificates", certificates)]
    names = [(place, check(place, each, SNI)) for place, each in entries("snis", snis)]
    if len(read) != 1 or len(names) != 1:
        raise UnsupportedError("certificates", 'exactly one certificate and one sni, "*", are carried over')
    (place, certificate), (spot, sni) = read[0], names[0]
    if check(f"{spot}.certificate", sni["certificate"], REFERENCE)["id"] != certificate["id"]:
        raise UnsupportedError(f"{spot}.certificate", f"must name the certificate {certificate['id']}")
    return Certificate(
        dereferenced(f"{place}.cert", certificate["cert"], environment),
        dereferenced(f"{place}.key", certificate["key"], environment),
    )
