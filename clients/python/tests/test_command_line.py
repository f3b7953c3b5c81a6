"""The arguments of the command."""

import pytest

from statecast_client.command_line import parse


def test_the_address_comes_from_the_option_or_the_environment() -> None:
    assert parse(["shards"], {}).address == "127.0.0.1:50051"
    assert parse(["shards"], {"STATECAST_ADDRESS": "a:1"}).address == "a:1"
    assert parse(["shards", "--address", "b:1"], {"STATECAST_ADDRESS": "a:1"}).address == "b:1"


def test_files_of_tls_come_from_the_environment_too() -> None:
    options = parse(["shards"], {"STATECAST_TLS_CA": "/ca.pem", "STATECAST_TLS_KEY": ""})

    assert (str(options.tls_ca), options.tls_key) == ("/ca.pem", None)


def test_the_gateway_and_the_credential_come_from_the_environment_too() -> None:
    known = {"STATECAST_GATEWAY": "wss://a", "STATECAST_API_KEY": "k", "STATECAST_TOKEN": "t", "STATECAST_USER": "u:p"}
    options = parse(["watch", "s", "k", "--push", "--token", "u"], known)

    assert (options.gateway, options.api_key, options.token, options.user) == ("wss://a", "k", "u", "u:p")


def test_a_scan_takes_a_part_of_a_group() -> None:
    options = parse(["scan", "s", "g", "--from", "1", "--to", "2", "--prefix", "1", "--reverse", "--limit", "5"], {})

    assert (options.sort_from, options.sort_to, options.sort_prefix) == ("1", "2", "1")
    assert (options.reverse, options.limit, options.local_only) == (True, 5, False)
    window = parse(["scan", "s", "--group-from", "a", "--group-to", "f", "--from", "1"], {})
    assert (window.group, window.group_from, window.group_to, window.sort_from) == ("", "a", "f", "1")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ([], "command"),
        (["gte", "s", "k"], "invalid choice: 'gte'"),
        (["get", "s"], "KEY"),
        (["watch", "s"], "KEY"),
        (["watch", "s", "k", "--push"], "--push needs --gateway"),
        (["scan", "s", "--limit", "0"], "--limit: `0` is not a number from 1 to 2147483647"),
        (["get", "s", "k", "--max-lag-ms", "9" * 20], "--max-lag-ms: `99999999999999999999` is not a number from 1"),
        (["shards", "--timeout", "soon"], "--timeout: `soon` is not a number of seconds"),
    ],
)
def test_a_wrong_argument_is_named_with_status_2(
    arguments: list[str], named: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        parse(arguments, {})

    assert ended.value.code == 2
    assert named in capsys.readouterr().err
