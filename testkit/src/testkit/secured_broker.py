"""A real broker that denies every operation without an ACL, and the users, certificates and ACLs of services."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TypeVar

import trustme
from confluent_kafka.admin import (  # type: ignore[attr-defined]  # not all in its __all__
    AclBinding,
    AclBindingFilter,
    AclOperation,
    AclPermissionType,
    AdminClient,
    ResourcePatternType,
    ResourceType,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
    load_pem_private_key,
)

from testkit.broker import BrokerProcess
from testkit.ports import free_ports
from testkit.waiting import wait_until

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
SCRAM = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
B = TypeVar("B", AclBinding, AclBindingFilter)
OPERATIONS = {each.name.title().replace("_", ""): each for each in AclOperation}


class SecuredBroker:
    """Listens with SASL_SSL (SCRAM-SHA-512), with mutual TLS, and in plain for the test itself, who may do everything.

    A service is the same user on both: by its password, or by the common name of its certificate.
    """

    def __init__(self, directory: Path) -> None:
        """Issues certificates and formats the storage below `directory`; `start` runs the broker."""
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._authority = trustme.CA(organization_name="Statecast test brokers")
        self._ca = directory / "ca.pem"
        self._ca.write_bytes(self._authority.cert_pem.bytes())
        certificate, key = self._issue("127.0.0.1", "broker")
        (directory / "broker.pem").write_bytes(key.read_bytes() + certificate.read_bytes())
        sasl, tls = free_ports(2)
        self._ports = {"SASL": sasl, "TLS": tls}
        self._process = BrokerProcess(directory / "broker", settings=self._settings(), listeners=self._ports)
        self._admin = AdminClient({"bootstrap.servers": self.bootstrap, "log_level": 0})
        self.start, self.stop = self._process.start, self._process.stop

    @property
    def bootstrap(self) -> str:
        """The plain address."""
        return self._process.bootstrap

    def set_password(self, service: str, password: str) -> None:
        """Makes the user, or changes the password, at the broker and in the service's file."""
        scram = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 4096)
        change = UserScramCredentialUpsertion(service, scram, password.encode())
        self._admin.alter_user_scram_credentials([change])[service].result()
        self._password_file(service).write_text(f"{password}\n")

    def with_password(self, service: str) -> dict[str, object]:
        """Returns the settings of a service that signs in with its password; without the service's prefix."""
        return {
            "kafka_bootstrap": f"127.0.0.1:{self._ports['SASL']}",
            "kafka_security_protocol": "SASL_SSL",
            "kafka_sasl_username": service,
            "kafka_sasl_password_location": self._password_file(service),
            "kafka_ssl_ca_location": self._ca,
        }

    def with_certificate(self, service: str) -> dict[str, object]:
        """Returns the settings of a service that shows a certificate."""
        certificate, key = self._issue(f"{service}.example.org", service)
        return {
            "kafka_bootstrap": f"127.0.0.1:{self._ports['TLS']}",
            "kafka_security_protocol": "SSL",
            "kafka_ssl_ca_location": self._ca,
            "kafka_ssl_certificate_location": certificate,
            "kafka_ssl_key_location": key,
        }

    def allow(self, service: str, operations: Iterable[str], kind: str, names: Iterable[str]) -> None:
        """Adds ACLs for operations by Kafka's names; the name of a group is a prefix."""
        self._add([_binding(service, operation, kind, name, AclBinding) for operation in operations for name in names])

    def allow_prefix(self, user: str, prefix: str) -> None:
        """Allows a user every operation on topics, groups and transactional ids with the prefix, and nothing else.

        Managed Kafka may give a team no more than that.
        """
        kinds = (ResourceType.TOPIC, ResourceType.GROUP, ResourceType.TRANSACTIONAL_ID)
        pattern, allow = ResourcePatternType.PREFIXED, AclPermissionType.ALLOW
        self._add([AclBinding(kind, prefix, pattern, f"User:{user}", "*", AclOperation.ALL, allow) for kind in kinds])

    @contextmanager
    def without(self, service: str, operation: str, kind: str, name: str) -> Iterator[None]:
        """Takes one ACL away for the block."""
        binding = _binding(service, operation, kind, name, AclBindingFilter)
        [removed] = self._admin.delete_acls([binding]).values()
        assert len(removed.result()) == 1, f"there is no ACL {binding}"
        wait_until(lambda: not self._admin.describe_acls(binding).result(), f"the broker still has the ACL {binding}")
        try:
            yield
        finally:
            self.allow(service, [operation], kind, [name])

    def _add(self, acls: Sequence[AclBinding]) -> None:
        """Adds ACLs, and waits until the broker applies them, which is after the controller has them."""
        for added in self._admin.create_acls(list(acls)).values():
            added.result()
        filters = [
            AclBindingFilter(
                acl.restype,
                acl.name,
                acl.resource_pattern_type,
                acl.principal,
                acl.host,
                acl.operation,
                acl.permission_type,
            )
            for acl in acls
        ]
        wait_until(
            lambda: all(self._admin.describe_acls(each).result() for each in filters), "the broker applies the ACLs"
        )

    def _password_file(self, service: str) -> Path:
        return self._directory / f"{service}.password"

    def _issue(self, host: str, name: str) -> tuple[Path, Path]:
        issued = self._authority.issue_cert(host, common_name=name)
        certificate, key = self._directory / f"{name}.pem", self._directory / f"{name}.key"
        certificate.write_bytes(b"".join(blob.bytes() for blob in issued.cert_chain_pems))
        private = load_pem_private_key(issued.private_key_pem.bytes(), None)
        key.write_bytes(private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))
        return certificate, key

    def _settings(self) -> Mapping[str, str]:
        return {
            "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,SASL:SASL_SSL,TLS:SSL",
            "authorizer.class.name": AUTHORIZER,
            "super.users": "User:ANONYMOUS",
            "sasl.enabled.mechanisms": "SCRAM-SHA-512",
            "listener.name.sasl.scram-sha-512.sasl.jaas.config": SCRAM,
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(self._directory / "broker.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self._ca),
            "listener.name.tls.ssl.client.auth": "required",
            "ssl.principal.mapping.rules": "RULE:^.*CN=([^,]+).*$/$1/,DEFAULT",
        }


def _binding(service: str, operation: str, kind: str, name: str, binding: type[B]) -> B:
    pattern = ResourcePatternType.PREFIXED if kind == "group" else ResourcePatternType.LITERAL
    user, allow = f"User:{service}", AclPermissionType.ALLOW
    return binding(ResourceType[kind.upper()], name, pattern, user, "*", OPERATIONS[operation], allow)


@contextmanager
def secured_broker(directory: Path) -> Iterator[SecuredBroker]:
    """Yields a broker that answers, and stops it at the end of the block."""
    broker = SecuredBroker(directory)
    try:
        broker.start()
        yield broker
    finally:
        broker.stop()
