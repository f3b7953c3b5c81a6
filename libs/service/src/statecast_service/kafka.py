"""Connects services to Kafka: one set of settings, translated into options for librdkafka and for Java clients.

A property has librdkafka's name in the properties file, and that name in capitals with underscores as a variable:
`security.protocol` is `WS_EDGE_KAFKA_SECURITY_PROTOCOL`. Passwords are in files of their own, never in a variable. Only
`group.prefix` is a name of ours.
"""

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal, Protocol, Self, TypeVar

import structlog
from confluent_kafka import KafkaError
from pydantic import Field, FilePath, model_validator

from statecast_service.settings import ServiceSettings, suggest

MAX_RECONNECT_MS = 1000
METADATA_REFRESH_MS = 5000
REQUEST_TIMEOUT_MS = 10_000
"""A client gives up on a broker that accepts connections but never answers, and turns to the partitions' new leader."""
REMINDER_S = 10.0
"""The shortest time between two log lines about refusals, which may come several times a second."""
SASL = {"kafka_sasl_username", "kafka_sasl_password_location"}
SSL = {"kafka_ssl_ca_location", "kafka_ssl_certificate_location", "kafka_ssl_key_location"}
POLLING = ("poll", "consume", "flush")
"""The methods from which a client invokes its callbacks."""
LOGIN_MODULES = {"PLAIN": "plain.PlainLoginModule"}
DENIED = {
    KafkaError.TOPIC_AUTHORIZATION_FAILED: "topic",
    KafkaError.GROUP_AUTHORIZATION_FAILED: "group",
    KafkaError.CLUSTER_AUTHORIZATION_FAILED: "cluster",
}

_log = structlog.get_logger()


class KafkaSettings(ServiceSettings):
    """Where the brokers are, and how a service proves who it is. A variable goes before a line of the file."""

    kafka_bootstrap: str = Field(default="127.0.0.1:9092", min_length=1, description="Kafka brokers, with commas.")
    kafka_properties: FilePath | None = Field(
        default=None, description="A file of lines like `security.protocol=SASL_SSL`, for any of these properties."
    )
    kafka_security_protocol: Literal["PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL"] = Field(
        default="PLAINTEXT", description="`security.protocol`: whether connections have TLS, and sign in with SASL."
    )
    kafka_sasl_mechanism: Literal["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"] = Field(
        default="SCRAM-SHA-512", description="`sasl.mechanism`."
    )
    kafka_sasl_username: str = Field(default="", description="`sasl.username`.")
    kafka_sasl_password_location: FilePath | None = Field(
        default=None, description="`sasl.password.location`: the password's file, read again when a broker refuses it."
    )
    kafka_ssl_ca_location: FilePath | None = Field(
        default=None, description="`ssl.ca.location`: CA of the brokers, as PEM; empty takes those of the system."
    )
    kafka_ssl_certificate_location: FilePath | None = Field(
        default=None, description="`ssl.certificate.location`: the certificate that is shown, as PEM with its chain."
    )
    kafka_ssl_key_location: FilePath | None = Field(
        default=None, description="`ssl.key.location`: its private key, as PEM (PKCS #8) without a password."
    )
    kafka_group_prefix: str = Field(
        default="",
        pattern=r"^[a-zA-Z0-9._-]*$",
        description="`group.prefix`: what the names of all consumer groups begin with, where ACLs allow no others.",
    )

    @model_validator(mode="before")
    @classmethod
    def _read_properties(cls, values: dict[str, Any]) -> dict[str, Any]:
        file = values.get("kafka_properties")
        return {**_properties_of(Path(file)), **values} if file else values

    @model_validator(mode="after")
    def _check_kafka(self) -> Self:
        protocol, variable = self.kafka_security_protocol, self.variable
        set_fields = {name for name in SASL | SSL if getattr(self, name)}
        for names, part in ((SASL, "SASL"), (SSL, "SSL")):
            if part not in protocol and set_fields & names:
                needed = f"needs {variable('kafka_security_protocol')} with {part}, which is {protocol}"
                raise ValueError(f"{variable(min(set_fields & names))} {needed}")
        key_pair = SSL - {"kafka_ssl_ca_location"}
        wanted = (SASL if "SASL" in protocol else set()) | (key_pair if set_fields & key_pair else set())
        if wanted - set_fields:
            raise ValueError(f"{variable(min(wanted - set_fields))}: it must be set beside the other settings of Kafka")
        if "SASL" in protocol:
            self.kafka_password()
        return self

    def group(self, name: str) -> str:
        """Returns the group id in Kafka: the prefix of the settings and the service's own `name`."""
        return f"{self.kafka_group_prefix}{name}"

    def kafka_password(self) -> str:
        """Reads the password from its file, without the line's end. Raises ValueError unless the file has one line."""
        file = self.kafka_sasl_password_location
        try:
            password = "" if file is None else file.read_text(encoding="utf-8").rstrip("\r\n")
        except OSError as error:
            raise ValueError(f"{file} cannot be read: {error.strerror}") from error
        except UnicodeDecodeError:  # it has the password
            raise ValueError(f"{self.variable('kafka_sasl_password_location')}={file}: it must be UTF-8") from None
        if not password or "\n" in password:
            raise ValueError(f"{self.variable('kafka_sasl_password_location')}={file}: it must have one line")
        return password


PROPERTIES = {
    "bootstrap.servers" if field == "kafka_bootstrap" else field.removeprefix("kafka_").replace("_", "."): field
    for field in KafkaSettings.model_fields
    if field != "kafka_properties"
}
"""The setting of each property that a properties file may have."""


def client_options(kafka: KafkaSettings) -> dict[str, Any]:
    """Returns the options of every client of librdkafka.

    The client writes nothing to standard error, and reconnects within a second of the broker's return.
    """
    options: dict[str, Any] = {
        "bootstrap.servers": kafka.kafka_bootstrap,
        "reconnect.backoff.max.ms": MAX_RECONNECT_MS,
        "topic.metadata.refresh.interval.ms": METADATA_REFRESH_MS,
        "socket.timeout.ms": REQUEST_TIMEOUT_MS,
        "log_level": 0,  # the client reports through its error callback
        "security.protocol": kafka.kafka_security_protocol,
    }
    if "SASL" in kafka.kafka_security_protocol:
        options |= {"sasl.mechanism": kafka.kafka_sasl_mechanism, "sasl.username": kafka.kafka_sasl_username}
        options["sasl.password"] = kafka.kafka_password()
    files = {name: getattr(kafka, field) for name, field in PROPERTIES.items() if field in SSL}
    return options | {name: str(file) for name, file in files.items() if file}


def java_options(kafka: KafkaSettings, callback_handler: str) -> dict[str, str]:
    """Returns the options of every client in Java. They name files, so secrets are neither in a plan nor in a log.

    `callback_handler` is a class that signs in with the login module's `user` and the content of `password_file`.
    """
    options = {"bootstrap.servers": kafka.kafka_bootstrap, "security.protocol": kafka.kafka_security_protocol}
    if kafka.kafka_sasl_password_location and "SASL" in kafka.kafka_security_protocol:
        module = LOGIN_MODULES.get(kafka.kafka_sasl_mechanism, "scram.ScramLoginModule")
        user, file = map(json.dumps, (kafka.kafka_sasl_username, str(kafka.kafka_sasl_password_location.absolute())))
        login = f"org.apache.kafka.common.security.{module} required user={user} password_file={file};"
        options |= {"sasl.mechanism": kafka.kafka_sasl_mechanism, "sasl.jaas.config": login}
        options["sasl.client.callback.handler.class"] = callback_handler
    if kafka.kafka_ssl_ca_location:
        location = str(kafka.kafka_ssl_ca_location.absolute())
        options |= {"ssl.truststore.type": "PEM", "ssl.truststore.location": location}
    if kafka.kafka_ssl_certificate_location and kafka.kafka_ssl_key_location:
        provider = "org.apache.kafka.common.config.provider.DirectoryConfigProvider"
        options |= {"config.providers": "directory", "config.providers.directory.class": provider}
        options |= {
            "ssl.keystore.type": "PEM",
            "ssl.keystore.certificate.chain": _content(kafka.kafka_ssl_certificate_location),
            "ssl.keystore.key": _content(kafka.kafka_ssl_key_location),
        }
    return options


class Client(Protocol):
    """The method that `connect` needs of a client of confluent-kafka."""

    def set_sasl_credentials(self, username: str, password: str) -> None: ...


C = TypeVar("C", bound=Client)


def connect(
    client: type[C],
    kafka: KafkaSettings,
    options: Mapping[str, Any] | None = None,
    on_error: Callable[[KafkaError], None] | None = None,
) -> C:
    """Makes a client with additional `options`; its `group.id` gets the prefix of the settings.

    `on_error` receives the client's errors, in the thread that polls; the client recovers from most of them, but not
    if `error.fatal()`. Without `on_error`, only refusals are logged: of credentials, certificates or the protocol.
    When a broker refuses the password, the client reads it from its file again. Both happen only while it is polled.
    """
    refused: list[KafkaError] = []
    reminded_at_s = -REMINDER_S

    def hear(error: KafkaError) -> None:
        nonlocal reminded_at_s
        if error.code() == KafkaError._AUTHENTICATION and "SASL" in kafka.kafka_security_protocol:
            refused.append(error)
        if on_error is not None:
            on_error(error)
        elif is_refusal(error) and time.monotonic() - reminded_at_s >= REMINDER_S:
            reminded_at_s = time.monotonic()
            _log.warning("kafka refuses the connection", reason=error.str())

    def renewing(method: Callable[..., Any]) -> Callable[..., Any]:
        # A client must not be called within its callback: this thread would end the process, another one would block.
        def call(self: C, *arguments: Any, **named: Any) -> Any:
            result = method(self, *arguments, **named)
            if refused:
                refused.clear()
                _renew_password(self, kafka)
            return result

        return call

    methods = {name: renewing(getattr(client, name)) for name in POLLING if hasattr(client, name)}
    own = dict(options or {})
    if "group.id" in own:
        own["group.id"] = kafka.group(own["group.id"])
    made: C = type(client.__name__, (client,), methods)({**client_options(kafka), "error_cb": hear, **own})
    return made


def _renew_password(client: Client, kafka: KafkaSettings) -> None:
    try:
        client.set_sasl_credentials(kafka.kafka_sasl_username, kafka.kafka_password())
    except ValueError as problem:
        _log.warning("the password of kafka is not there", reason=str(problem))


def is_refusal(error: KafkaError) -> bool:
    """Returns whether waiting is useless, because one side has wrong credentials, certificates or protocol."""
    return error.code() in (KafkaError._AUTHENTICATION, KafkaError._SSL) or "security.protocol" in error.str()


def reason(error: KafkaError, operation: str, name: str) -> str:
    """Returns the error's text; when the brokers' ACLs are the cause, it names `operation` and the topic or group."""
    kind = DENIED.get(error.code())
    return error.str() if kind is None else denied(operation, kind, name)


def denied(operation: str, kind: str, name: str) -> str:
    return f"the ACLs of Kafka do not allow {operation} on the {kind} {name}"


def _properties_of(file: Path) -> dict[str, str]:
    """Reads the settings of a properties file. Raises ValueError that names the file and the unknown property."""
    try:
        lines = [line.strip() for line in file.read_text(encoding="utf-8").splitlines()]
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{file} cannot be read: {error}") from error
    values = {}
    for line in lines:
        name, _, value = map(str.strip, line.partition("="))
        if name in PROPERTIES:
            values[PROPERTIES[name]] = value
        elif name and name[0] not in "#!":
            raise ValueError(f"{file}: {name}: there is no such property; {suggest(name, PROPERTIES)}")
    return {setting: value for setting, value in values.items() if value}


def _content(file: Path) -> str:
    """Returns a placeholder that Java clients replace with the content of the file when they connect."""
    return f"${{directory:{file.absolute().parent}:{file.name}}}"
