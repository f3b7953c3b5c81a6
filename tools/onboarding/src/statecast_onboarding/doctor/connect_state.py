"""Checks that a connector runs at Kafka Connect, and that no other takes its slot or publication."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import quote

import httpx

from statecast_onboarding.connector_file import settings_of
from statecast_onboarding.doctor.finding import Finding, fail, ok
from statecast_onboarding.errors import WRONG_URL
from statecast_service.settings import suggest

TIMEOUT_S = 10.0
_OWN = {"slot.name": "debezium", "publication.name": "dbz_publication"}
"""Settings that two connectors of one database cannot share, with Debezium's defaults."""


@dataclass(frozen=True)
class RunningConnector:
    """A connector as Connect knows it; `config` is empty when it is not there."""

    findings: list[Finding]
    config: Mapping[str, str] = field(default_factory=dict)

    @property
    def runs(self) -> bool:
        return bool(self.config) and all(finding.level != "FAIL" for finding in self.findings)


def running_connector(url: str, name: str) -> RunningConnector:
    """Asks Kafka Connect for the state and the configuration of a connector. No finding shows the URL's password."""
    if (secret := _http_url(url)) is None:
        return RunningConnector([fail("connect", WRONG_URL.format("http://user:password@host:8083"))])
    url, auth = str(secret.copy_with(userinfo=b"")), (secret.username, secret.password)
    try:
        with httpx.Client(base_url=url, timeout=TIMEOUT_S, trust_env=False, auth=auth if any(auth) else None) as client:
            path = f"/connectors/{quote(name, safe='')}"
            answer = client.get(path)
            if answer.status_code == httpx.codes.NOT_FOUND:
                names = [str(each) for each in client.get("/connectors").raise_for_status().json()]
                return RunningConnector(
                    [fail(f"connector {name}", f"Connect at {url} does not have it; {suggest(name, names)}")]
                )
            config = settings_of(answer.raise_for_status().json()["config"])
            findings = list(_state(name, client.get(f"{path}/status").raise_for_status().json()))
            others = client.get("/connectors", params={"expand": "info"}).raise_for_status().json()
            configs = {str(other): settings_of(about["info"]["config"]) for other, about in others.items()}
            return RunningConnector([*findings, *shared_parts(name, config, configs)], config)
    except (httpx.HTTPError, ValueError, AttributeError, KeyError, TypeError) as error:
        return RunningConnector([fail("connect", f"Kafka Connect at {url} does not answer as it should: {error}")])


def _http_url(text: str) -> httpx.URL | None:
    try:
        url = httpx.URL(text)
    except httpx.InvalidURL:
        return None
    return url if url.scheme in ("http", "https") and url.host else None


def shared_parts(name: str, config: Mapping[str, str], configs: Mapping[str, Mapping[str, str]]) -> Iterator[Finding]:
    """Finds settings that a connector must have alone and shares. `configs` are those of all connectors."""
    if "slot.name" not in config and not config.get("connector.class", "").endswith("PostgresConnector"):
        return
    same = ("connector.class", "database.hostname", "database.port", "database.dbname")
    for other, settings in configs.items():
        if other == name or any(config.get(each) != settings.get(each) for each in same):
            continue
        for part, default in _OWN.items():
            if (value := config.get(part, default)) == settings.get(part, default):
                yield fail(
                    part, f"is {value}, as of the connector {other}: each takes the other's away; give it its own"
                )


def _state(name: str, status: Mapping[str, Any]) -> Iterator[Finding]:
    tasks = status.get("tasks") or []
    stopped = [part for part in (status.get("connector") or {}, *tasks) if part.get("state") != "RUNNING"]
    for part in stopped:
        reason = str(part.get("trace") or "").partition("\n")[0] or "look into the log of Connect"
        yield fail(f"connector {name}", f"is {part.get('state')}: {reason}")
    if not tasks:
        yield fail(f"connector {name}", "has no task: look into the log of Connect")
    elif not stopped:
        yield ok(f"connector {name}", "runs")
