"""Values that the file takes from the environment."""

import pytest

from kong_envoy.environment import dereferenced, expanded
from kong_envoy.errors import KongEnvoyError, UnsupportedError

TEMPLATE = '$(os and os.getenv("GATEWAY_SECRET") or "for demonstration")'


def test_a_reference_names_a_variable_in_small_letters() -> None:
    for reference in ("{vault://env/gateway-tls-key}", "{vault://env/gateway_tls_key}"):
        assert dereferenced("here", reference, {"GATEWAY_TLS_KEY": "pem"}) == "pem"


def test_a_value_without_a_reference_stands_for_itself() -> None:
    assert dereferenced("here", "pem", {}) == "pem"


@pytest.mark.parametrize("environment", [{}, {"GATEWAY_TLS_KEY": ""}])
def test_a_missing_variable_is_named(environment: dict[str, str]) -> None:
    with pytest.raises(KongEnvoyError, match=r"here: .* set the environment variable GATEWAY_TLS_KEY"):
        dereferenced("here", "{vault://env/gateway-tls-key}", environment)


@pytest.mark.parametrize("reference", ["{vault://aws/key}", "{vault://env/key?prefix=A_}", "{vault://env/a/b}"])
def test_other_references_are_refused(reference: str) -> None:
    with pytest.raises(UnsupportedError, match="here"):
        dereferenced("here", reference, {"KEY": "x"})


def test_a_template_takes_the_variable_or_else_its_literal() -> None:
    assert expanded(TEMPLATE, {"GATEWAY_SECRET": "real"}) == "real"
    assert expanded(TEMPLATE, {}) == "for demonstration"


def test_a_value_without_a_template_stands_for_itself() -> None:
    assert expanded("plain (text) $5", {}) == "plain (text) $5"


@pytest.mark.parametrize("template", ["$(headers['x-y'])", f"a{TEMPLATE}", "$(os.execute('ls'))"])
def test_other_templates_are_refused(template: str) -> None:
    with pytest.raises(ValueError, match="is carried over"):
        expanded(template, {})
