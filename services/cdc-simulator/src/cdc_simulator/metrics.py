"""The metrics of the simulator, and the reasons why it is not ready."""

from prometheus_client import CollectorRegistry, Counter, Gauge

from statecast_service.health import register_build


class Readiness:
    """Set by the thread that works, read by those that answer probes."""

    def __init__(self, reason: str) -> None:
        self.reason: str | None = reason
        """Why it is not ready; None when it is."""


class Metrics:
    """One set of metrics in a registry of its own; counters begin with the process."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        register_build(registry, "cdc-simulator")
        by_operation = ["operation"]
        text = "Changes committed to the tables, by operation (create, update, delete)."
        self.committed = Counter("cdc_simulator_changes_committed", text, by_operation, registry=registry)
        text = "Changes acknowledged by Kafka, by operation (also snapshot)."
        self.published = Counter("cdc_simulator_changes_published", text, by_operation, registry=registry)
        text = "Log sequence number of the last change."
        self.committed_lsn = Gauge("cdc_simulator_committed_lsn", text, registry=registry)
        text = "Log sequence number up to which Kafka has everything."
        self.acknowledged_lsn = Gauge("cdc_simulator_acknowledged_lsn", text, registry=registry)
        text = "Changes that Kafka has not acknowledged yet: grows while no broker answers."
        self.lag = Gauge("cdc_simulator_lag_changes", text, registry=registry)
        self.rows = Gauge("cdc_simulator_rows", "Rows, by table.", ["table"], registry=registry)
        text = "Errors of the Kafka client, which it recovers from by itself."
        self.broker_errors = Counter("cdc_simulator_broker_errors", text, registry=registry)
