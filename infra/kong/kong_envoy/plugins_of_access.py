"""Reads who may pass, how much and how often: acl, request-size-limiting and rate-limiting."""

from typing import Any

from kong_envoy.errors import UnsupportedError
from kong_envoy.fields import Table, check, flag, only, optional, required, text, texts, whole

ACL: Table = {
    "allow": required(texts),
    "hide_groups_header": optional(flag, False),
    "always_use_authenticated_groups": optional(only(False), False),
}
REQUEST_SIZE_LIMITING: Table = {
    "allowed_payload_size": optional(whole(1), 128),
    "size_unit": optional(only("bytes", "kilobytes", "megabytes"), "megabytes"),
    "require_content_length": optional(only(False), False),
}
PERIODS = ("second", "minute", "hour", "day")
RATE_LIMITING: Table = {
    **{period: optional(whole(1)) for period in PERIODS},
    "limit_by": optional(only("consumer", "ip"), "consumer"),
    "policy": optional(only("local"), "local"),
    "fault_tolerant": optional(flag, True),  # a local counter has no fault to tolerate
    "hide_client_headers": optional(flag, False),
    "error_code": optional(whole(400, 599), 429),
    "error_message": optional(text, "API rate limit exceeded"),
}
BYTES = {"bytes": 1, "kilobytes": 1024, "megabytes": 1024 * 1024}
MOST_BUFFERED = 1024 * 1024


def read_acl(where: str, config: object) -> dict[str, Any]:
    """The plugin acl, with a list of who may pass."""
    values = check(where, config, ACL)
    return {"allow": values["allow"], "hide_groups_header": values["hide_groups_header"]}


def read_request_size_limiting(where: str, config: object) -> dict[str, Any]:
    """The plugin request-size-limiting. A body of unannounced length is held in memory: 1 MiB is the most."""
    values = check(where, config, REQUEST_SIZE_LIMITING)
    size = values["allowed_payload_size"] * BYTES[values["size_unit"]]
    if size > MOST_BUFFERED:
        raise UnsupportedError(where, f"at most {MOST_BUFFERED} bytes are carried over, not {size}")
    return {"bytes": size}


def read_rate_limiting(where: str, config: object, scope: str) -> dict[str, Any]:
    """The plugin rate-limiting; requests within one `scope` count together."""
    values = check(where, config, RATE_LIMITING)
    limits = {period.capitalize(): values[period] for period in PERIODS if values[period]}
    if not limits:
        raise UnsupportedError(where, f"needs at least one of {', '.join(PERIODS)}")
    kept = ("limit_by", "hide_client_headers", "error_code", "error_message")
    return {**{name: values[name] for name in kept}, "limits": limits, "scope": scope}
