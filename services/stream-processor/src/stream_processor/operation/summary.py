"""Says in one line for people how the queries do."""

from prometheus_client import CollectorRegistry

from stream_processor.operation.output import Output


def summary(registry: CollectorRegistry, output: Output, reason: str | None, now: float) -> str:
    """The line of a process whose readiness is `reason`; `now` is in seconds since 1970, like the metrics."""
    if reason is not None:
        return reason
    checkpoints = _values(registry, "stream_processor_last_checkpoint_timestamp_seconds")
    parts = [
        f"in {sum(_values(registry, 'stream_processor_input_rows_per_second')):,.0f}/s",
        f"out {output.rate:,.0f}/s",
        f"lag p50 {_milliseconds(output.quantile(0.5))}, p99 {_milliseconds(output.quantile(0.99))}",
        f"state {sum(_values(registry, 'stream_processor_state_rows')):,.0f} rows",
        f"checkpoint {now - min(checkpoints):,.0f} s ago" if checkpoints else "no checkpoint yet",
        f"dead letters {sum(_values(registry, 'stream_processor_dead_letters')):,.0f}",
    ]
    return " · ".join(parts)


def _values(registry: CollectorRegistry, name: str) -> list[float]:
    return [sample.value for family in registry.collect() for sample in family.samples if sample.name == name]


def _milliseconds(seconds: float | None) -> str:
    return "unknown" if seconds is None else f"{seconds * 1000:,.0f} ms"
