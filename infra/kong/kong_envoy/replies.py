"""Writes what clients read when Envoy itself cannot go on: Kong's status and text for each reason."""

from typing import Any

BODY = '{\n  "message":"%s",\n  "request_id":"%%DYNAMIC_METADATA(kong:request_id)%%"\n}'
REPLIES = {
    ("UH",): (503, "failure to get a peer from the ring-balancer"),
    ("UF", "URX", "UC"): (502, "An invalid response was received from the upstream server"),
    ("UT", "SI"): (504, "The upstream server is timing out"),
}
"""By Envoy's response flags: no healthy upstream; connection failed, retries used up, connection ended; too slow."""

TOO_LARGE = "Request size limit exceeded"


def local_replies() -> dict[str, Any]:
    """The mapping of Envoy's own answers."""
    flagged = [_mapper({"response_flag_filter": {"flags": list(flags)}}, *reply) for flags, reply in REPLIES.items()]
    return {"mappers": [*flagged, _mapper(_status_is(413), 413, TOO_LARGE)]}


def _mapper(condition: dict[str, Any], status: int, message: str) -> dict[str, Any]:
    return {
        "filter": condition,
        "status_code": status,
        "body_format_override": {
            "text_format_source": {"inline_string": BODY % message},
            "content_type": "application/json; charset=utf-8",
        },
    }


def _status_is(status: int) -> dict[str, Any]:
    value = {"default_value": status, "runtime_key": f"kong_envoy.status_{status}"}
    return {"status_code_filter": {"comparison": {"op": "EQ", "value": value}}}
