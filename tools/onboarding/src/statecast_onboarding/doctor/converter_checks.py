"""Checks that a connector's converters write keys and values as pipelines read them."""

from collections.abc import Iterator, Mapping

from statecast_onboarding.connector_file import JSON_CONVERTER
from statecast_onboarding.doctor.finding import Finding, fail, ok, warn

CONVERTERS = ("key.converter", "value.converter")
_NULLS = "replace.null.with.default"


def check_converters(config: Mapping[str, str]) -> Iterator[Finding]:
    """Looks at the converters of keys and values, and at the settings that go with JSON."""
    for name in CONVERTERS:
        yield from _converter(config, name)
    yield from _numbers(config)


def _converter(config: Mapping[str, str], name: str) -> Iterator[Finding]:
    converter = config.get(name)
    if converter is None:
        text = f"is the worker's, which is not seen here: set it to {JSON_CONVERTER}"
        yield warn(name, f"{text}, and {name}.{_NULLS} to false, or NULL comes as the column's DEFAULT")
        for setting in sorted(each for each in config if each.startswith(f"{name}.")):
            yield fail(setting, f"is ignored by Connect, because {name} is not set here: set it to {JSON_CONVERTER}")
    elif converter != JSON_CONVERTER and name == "key.converter":
        yield warn(
            name, f"is {converter}: the key is read as JSON alone; set it to {JSON_CONVERTER}, or give source.key"
        )
    elif converter != JSON_CONVERTER:
        yield fail(name, f"is {converter}: changes are read as JSON{_registry(converter)}; set it to {JSON_CONVERTER}")
    elif config.get(f"{name}.{_NULLS}", "true") != "false":
        yield fail(f"{name}.{_NULLS}", "is true, so NULL comes as the column's DEFAULT, a wrong value: set it to false")


def _registry(converter: str) -> str:
    named = any(form in converter for form in ("Avro", "Protobuf", "JsonSchema"))
    return ", and records of a schema registry are not read yet" if named else ""


def _numbers(config: Mapping[str, str]) -> Iterator[Finding]:
    schemas = "value.converter" not in config or config.get("value.converter.schemas.enable", "true") == "true"
    decimals, times = config.get("decimal.handling.mode", "precise"), config.get("time.precision.mode", "adaptive")
    if decimals == "precise" and not schemas:
        yield fail("decimal.handling.mode", "is precise, and without schemas nobody knows the scale: set it to string")
    elif decimals == "double":
        yield warn("decimal.handling.mode", "is double: amounts are rounded; set it to string")
    else:
        yield ok("decimal.handling.mode", f"is {decimals}")
    if not schemas and times != "isostring":
        text = "is false: dates and times are bare numbers whose unit is guessed; set it to true"
        yield warn("value.converter.schemas.enable", f"{text}, or time.precision.mode to isostring")
