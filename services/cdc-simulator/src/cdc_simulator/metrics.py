"""The names and meanings of all metrics of the simulator."""

from prometheus_client import CollectorRegistry, Counter, Gauge


class Metrics:
    """One set of metrics in a registry of its own."""

    def __init__(self, registry: CollectorRegistry) -> None:
        self.registry = registry
        # Mutations committed to the tables since the start of the process, by create, update, delete.
        self.committed = Counter(
            "cdc_simulator_changes_committed", "Changes committed to the tables.", ["operation"], registry=registry
        )
        # Changes that Kafka acknowledged since the start of the process, also by snapshot.
        self.published = Counter(
            "cdc_simulator_changes_published", "Changes acknowledged by Kafka.", ["operation"], registry=registry
        )
        # The log sequence number of the last change, and the one up to which Kafka has everything.
        self.committed_lsn = Gauge("cdc_simulator_committed_lsn", "Last log sequence number.", registry=registry)
        self.acknowledged_lsn = Gauge(
            "cdc_simulator_acknowledged_lsn", "Log sequence number up to which Kafka has everything.", registry=registry
        )
        # Changes in the log that Kafka has not acknowledged: grows while no broker answers.
        self.lag = Gauge("cdc_simulator_lag_changes", "Changes not acknowledged by Kafka yet.", registry=registry)
        # Rows of each table now.
        self.rows = Gauge("cdc_simulator_rows", "Rows of the table.", ["table"], registry=registry)
        # Complaints of the Kafka client, which it recovers from by itself.
        self.broker_errors = Counter("cdc_simulator_broker_errors", "Errors of brokers.", registry=registry)
