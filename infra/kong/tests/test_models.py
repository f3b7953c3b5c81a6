"""Fields that are carried over, and those that are not."""

from typing import Any

import pytest
from pydantic import ValidationError

from kong_envoy.models import HttpChecks, Route, Service, Target
from kong_envoy.plugins import Acl, Jwt, Plugin, RateLimiting

ROUTE: dict[str, Any] = {"name": "x", "paths": ["/x"], "strip_path": False}


def test_defaults_fill_what_is_left_out() -> None:
    service = Service.model_validate({"name": "x", "host": "y"})

    assert (service.port, service.retries, service.read_timeout) == (80, 5, 60_000)


@pytest.mark.parametrize(
    ("changes", "place"),
    [
        ({"name": None}, "name"),
        ({"other": 1}, "other"),
        ({"name": ""}, "name"),
        ({"name": 1}, "name"),
        ({"paths": "/x"}, "paths"),
        ({"paths": [1]}, "paths"),
        ({"strip_path": 0}, "strip_path"),
        ({"preserve_host": True}, "preserve_host"),
        ({"regex_priority": 1}, "regex_priority"),
    ],
)
def test_what_is_not_carried_over_is_named(changes: dict[str, object], place: str) -> None:
    with pytest.raises(ValidationError) as refusal:
        Route.model_validate(ROUTE | changes)

    assert refusal.value.errors()[0]["loc"][0] == place


def test_a_list_of_allowed_values_stands_for_a_set() -> None:
    assert Route.model_validate(ROUTE | {"protocols": ["https", "http"]})
    with pytest.raises(ValidationError, match="is carried over"):
        Route.model_validate(ROUTE | {"protocols": ["http"]})


def test_a_field_that_is_not_carried_over_may_stand_there_with_kongs_default() -> None:
    assert Route.model_validate(ROUTE | {"preserve_host": False, "path_handling": "v0", "tags": ["x"]})
    assert Jwt.model_validate({"anonymous": "x", "uri_param_names": [], "run_on_preflight": True, "cookie_names": []})


def test_false_is_not_zero() -> None:
    with pytest.raises(ValidationError):
        Route.model_validate(ROUTE | {"preserve_host": 0})
    with pytest.raises(ValidationError):
        Route.model_validate(ROUTE | {"regex_priority": False})


@pytest.mark.parametrize("weight", [0, 65_536, True, "1"])
def test_numbers_have_bounds(weight: object) -> None:
    with pytest.raises(ValidationError, match="weight"):
        Target.model_validate({"target": "x:1", "weight": weight})


def test_a_rate_limit_needs_a_period() -> None:
    with pytest.raises(ValidationError, match="needs at least one of second, minute, hour, day"):
        RateLimiting.model_validate({})


@pytest.mark.parametrize(("model", "value"), [(Acl, []), (HttpChecks, "x"), (Plugin, None)])
def test_an_entity_must_be_a_mapping(model: type[Acl], value: object) -> None:
    with pytest.raises(ValidationError, match="valid dictionary"):
        model.model_validate(value)
