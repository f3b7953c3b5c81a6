"""One set of settings for every client of Kafka: checked at the start, in librdkafka's words and in Java's."""

import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import KafkaError, Producer
from pydantic_settings import SettingsConfigDict
from structlog.testing import capture_logs

from statecast_service.errors import SettingsError
from statecast_service.kafka import KafkaSettings, client_options, connect, java_options, reason
from statecast_service.settings import load_settings

HANDLER = "org.example.PasswordFile"
Load = Callable[..., KafkaSettings]


class DemoSettings(KafkaSettings):
    model_config = SettingsConfigDict(env_prefix="DEMO_")


@pytest.fixture
def files(tmp_path: Path) -> dict[str, Path]:
    """A password with the end of its line, and files that stand for certificates."""
    contents = {"password": "pass\"word'\n", "ca.pem": "CA", "tls.crt": "certificate", "tls.key": "key"}
    for name, content in contents.items():
        (tmp_path / name).write_text(content)
    return {name: tmp_path / name for name in contents}


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Load:
    """Loads settings from these variables, which are given without the prefix."""

    def load(**variables: object) -> KafkaSettings:
        for name, value in variables.items():
            monkeypatch.setenv(f"DEMO_KAFKA_{name}", str(value))
        return load_settings(DemoSettings)

    return load


@pytest.fixture
def signed_in(load: Load, files: dict[str, Path]) -> KafkaSettings:
    return load(
        SECURITY_PROTOCOL="SASL_SSL",
        SASL_USERNAME="demo",
        SASL_PASSWORD_LOCATION=files["password"],
        SSL_CA_LOCATION=files["ca.pem"],
    )


def test_without_settings_a_client_has_neither_tls_nor_sasl(load: Load) -> None:
    assert client_options(load())["security.protocol"] == "PLAINTEXT"
    assert java_options(load(), HANDLER) == {
        "bootstrap.servers": "127.0.0.1:9092",
        "security.protocol": "PLAINTEXT",
    }


def test_librdkafka_gets_its_own_names_and_the_password(signed_in: KafkaSettings, files: dict[str, Path]) -> None:
    options = client_options(signed_in)

    assert options["security.protocol"] == "SASL_SSL"
    assert options["sasl.mechanism"] == "SCRAM-SHA-512"
    assert (options["sasl.username"], options["sasl.password"]) == ("demo", "pass\"word'")
    assert options["ssl.ca.location"] == str(files["ca.pem"])
    assert "ssl.key.location" not in options


def test_java_gets_its_own_names_and_where_the_password_is(signed_in: KafkaSettings, files: dict[str, Path]) -> None:
    options = java_options(signed_in, HANDLER)

    assert options["sasl.jaas.config"] == (
        "org.apache.kafka.common.security.scram.ScramLoginModule required "
        f'user="demo" password_file="{files["password"]}";'
    )
    assert options["sasl.client.callback.handler.class"] == HANDLER
    assert options["ssl.truststore.location"] == str(files["ca.pem"])
    assert not any("pass\"word'" in value for value in options.values())


def test_a_certificate_goes_to_both_with_its_key(load: Load, files: dict[str, Path]) -> None:
    certificate, key = files["tls.crt"], files["tls.key"]
    settings = load(SECURITY_PROTOCOL="SSL", SSL_CERTIFICATE_LOCATION=certificate, SSL_KEY_LOCATION=key)
    options, java = client_options(settings), java_options(settings, HANDLER)

    assert (options["ssl.certificate.location"], options["ssl.key.location"]) == (str(certificate), str(key))
    assert java["ssl.keystore.certificate.chain"] == f"${{directory:{certificate.parent}:tls.crt}}"
    assert java["ssl.keystore.key"] == f"${{directory:{key.parent}:tls.key}}"
    assert "sasl.jaas.config" not in java


def test_a_properties_file_says_the_same_and_a_variable_goes_before_it(
    load: Load, files: dict[str, Path], tmp_path: Path
) -> None:
    properties = tmp_path / "client.properties"
    properties.write_text(
        "# how to reach Kafka\n\n"
        "bootstrap.servers = broker-1:9093,broker-2:9093\n"
        "security.protocol=SASL_PLAINTEXT\n"
        "sasl.mechanism=PLAIN\n"
        "sasl.username=from-the-file\n"
        f"sasl.password.location={files['password']}\n"
    )
    settings = load(PROPERTIES=properties, SASL_USERNAME="from-the-variable")

    assert settings.kafka_bootstrap == "broker-1:9093,broker-2:9093"
    assert settings.kafka_sasl_mechanism == "PLAIN"
    assert settings.kafka_sasl_username == "from-the-variable"


@pytest.mark.parametrize(
    ("line", "complaint"),
    [
        ("sasl.password=secret", "sasl.password: there is no such property; did you mean sasl.password.location?"),
        ("ssl.truststore.location=x", "ssl.truststore.location: there is no such property; did you mean"),
        ("security.protocol=SSSL", "DEMO_KAFKA_SECURITY_PROTOCOL='SSSL': Input should be 'PLAINTEXT', 'SSL'"),
    ],
)
def test_a_wrong_line_is_refused_by_its_name(load: Load, tmp_path: Path, line: str, complaint: str) -> None:
    (tmp_path / "client.properties").write_text(line)

    with pytest.raises(SettingsError) as refused:
        load(PROPERTIES=tmp_path / "client.properties")

    assert complaint in str(refused.value)
    assert "secret" not in str(refused.value)


@pytest.mark.parametrize(
    ("variables", "complaint"),
    [
        ({"SASL_USERNAM": "demo"}, "DEMO_KAFKA_SASL_USERNAM: there is no such variable; did you mean"),
        (
            {"SASL_USERNAME": "demo"},
            "DEMO_KAFKA_SASL_USERNAME needs DEMO_KAFKA_SECURITY_PROTOCOL with SASL, which is PLAINTEXT",
        ),
        (
            {"SECURITY_PROTOCOL": "SASL_SSL", "SASL_USERNAME": "demo"},
            "DEMO_KAFKA_SASL_PASSWORD_LOCATION: it must be set beside the other settings of Kafka",
        ),
        ({"PROPERTIES": "/no/such/file"}, "/no/such/file cannot be read"),
        ({"GROUP_PREFIX": "acme/"}, "DEMO_KAFKA_GROUP_PREFIX='acme/': String should match pattern"),
        ({"SSL_CA_LOCATION": "/no/such/ca.pem"}, "DEMO_KAFKA_SSL_CA_LOCATION='/no/such/ca.pem': Path does not point"),
    ],
)
def test_settings_that_cannot_work_are_refused(load: Load, variables: dict[str, Any], complaint: str) -> None:
    with pytest.raises(SettingsError) as refused:
        load(**variables)

    assert complaint in str(refused.value)


@pytest.mark.parametrize(
    ("content", "problem"),
    [(b"hunter2\nhunter3\n", "it must have one line"), ("hunter2\n".encode("utf-16"), "it must be UTF-8")],
)
def test_a_file_that_is_no_password_is_refused_and_not_shown(
    load: Load, files: dict[str, Path], content: bytes, problem: str
) -> None:
    files["password"].write_bytes(content)

    with pytest.raises(SettingsError, match=rf"DEMO_KAFKA_SASL_PASSWORD_LOCATION=.*: {problem}") as refused:
        load(SECURITY_PROTOCOL="SASL_SSL", SASL_USERNAME="demo", SASL_PASSWORD_LOCATION=files["password"])

    assert "hunter" not in str(refused.value)


class RefusedClient:
    """A client that has its password refused at each poll."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.passwords = [options["sasl.password"]]
        self._hear = options["error_cb"]

    def set_sasl_credentials(self, username: str, password: str) -> None:
        assert username == "demo"
        self.passwords.append(password)

    def poll(self, code: int) -> None:
        self._hear(KafkaError(code, "a reason"))


def test_a_refused_client_takes_the_password_from_its_file_anew(
    signed_in: KafkaSettings, files: dict[str, Path]
) -> None:
    client = connect(RefusedClient, signed_in)
    files["password"].write_text("newer")
    with capture_logs() as lines:
        client.poll(KafkaError._TRANSPORT)
        client.poll(KafkaError._AUTHENTICATION)
        files["password"].unlink()
        client.poll(KafkaError._AUTHENTICATION)
    output = str(lines)

    assert client.passwords == ["pass\"word'", "newer"]
    assert "kafka refuses the connection" in output
    assert "newer" not in output


class GroupClient(RefusedClient):
    """A client that remembers its consumer group."""

    def __init__(self, options: dict[str, Any]) -> None:
        self.group = options["group.id"]


def test_each_group_of_a_client_begins_with_the_prefix(load: Load, tmp_path: Path) -> None:
    readers: dict[str, Any] = {"group.id": "readers"}
    plain = connect(GroupClient, load(), readers)
    (tmp_path / "client.properties").write_text("group.prefix=acme.\n")
    prefixed = load(PROPERTIES=tmp_path / "client.properties")

    assert plain.group == "readers"
    assert connect(GroupClient, prefixed, readers).group == prefixed.group("readers") == "acme.readers"


def test_a_client_tells_its_callback_that_no_broker_answers() -> None:
    errors: list[KafkaError] = []
    producer = connect(Producer, KafkaSettings(kafka_bootstrap="127.0.0.1:1"), on_error=errors.append)
    deadline = time.monotonic() + 10
    while not errors and time.monotonic() < deadline:
        producer.poll(0.1)

    assert errors
    assert not errors[0].fatal()


def test_a_refusal_names_the_operation_and_the_topic_or_group() -> None:
    topic, group = KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), KafkaError(KafkaError.GROUP_AUTHORIZATION_FAILED)

    assert reason(topic, "Write", "orders") == "the ACLs of Kafka do not allow Write on the topic orders"
    assert reason(group, "Read", "readers") == "the ACLs of Kafka do not allow Read on the group readers"
    assert "Timed out" in reason(KafkaError(KafkaError._TIMED_OUT), "Read", "orders")
