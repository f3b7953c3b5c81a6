"""How long changes took to their keyed topic, with the pauses at checkpoints apart."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bench.results import percentiles

NEAR_MS = 1_500.0  # a checkpoint is noted so far at most from the pause that it makes
MIN_SAMPLES = 100


@dataclass(frozen=True)
class Sample:
    """One change: when it was sent and when the last of its records was appended, in milliseconds."""

    sent_ms: float
    appended_ms: float

    @property
    def took_ms(self) -> float:
        """The time between; the broker stamps whole milliseconds, which may round it below nothing."""
        return max(self.appended_ms - self.sent_ms, 0.0)


@dataclass(frozen=True)
class Pause:
    """A time in which at least one partition of the sink got no record."""

    from_ms: float
    until_ms: float

    @property
    def recovered_ms(self) -> float:
        """When the rest is worked off, which takes as long as the pause."""
        return 2 * self.until_ms - self.from_ms

    def delays(self, sample: Sample) -> bool:
        """Returns whether the sample was under way in it, or was sent while the rest was worked off."""
        return sample.sent_ms < self.recovered_ms and sample.appended_ms > self.from_ms


def pauses(times_ms: Mapping[int, Sequence[float]], commits_ms: Iterable[float]) -> list[Pause]:
    """Returns the longest gap near each commit, with the gaps of other partitions that overlap it.

    `times_ms` holds for each partition when its records were appended, in order.
    """
    gaps = [Pause(*pair) for times in times_ms.values() for pair in pairwise(times) if pair[1] > pair[0]]
    near_commits = []
    for commit in commits_ms:
        near = [gap for gap in gaps if gap.from_ms < commit + NEAR_MS and gap.until_ms > commit - NEAR_MS]
        if near:
            longest = max(near, key=lambda gap: gap.until_ms - gap.from_ms)
            together = [gap for gap in near if gap.from_ms < longest.until_ms and gap.until_ms > longest.from_ms]
            near_commits.append(Pause(min(gap.from_ms for gap in together), max(gap.until_ms for gap in together)))
    return near_commits


def outside(samples: Iterable[Sample], apart: Sequence[Pause]) -> list[Sample]:
    return [sample for sample in samples if not any(pause.delays(sample) for pause in apart)]


def p99_ms(samples: Iterable[Sample]) -> float:
    """Returns the 99th percentile; infinite when there are too few samples for one."""
    took = [sample.took_ms for sample in samples]
    return percentiles("took", took)["took_p99"] if len(took) >= MIN_SAMPLES else math.inf


def longest_ms(samples: Iterable[Sample], pause: Pause) -> float:
    """Returns the longest that a change took that the pause delayed. Raises ValueError when it delayed none."""
    return round(max(sample.took_ms for sample in samples if pause.delays(sample)), 1)


def figures(mode: str, suffix: str, samples: Sequence[Sample], apart: Sequence[Pause]) -> dict[str, float]:
    """`<mode>_ms_p50`, `_p90`, `_p99` and `_max` of the samples that no pause delays.

    Where there are pauses, also the p99 of all samples, and the longest that a pause delayed one. When pauses delay
    nearly all samples, all count. Raises ValueError when there are fewer than 100 samples.
    """
    name = f"{mode}_ms"
    free = outside(samples, apart)
    if len(free) < MIN_SAMPLES:
        free = list(samples)
    took = [sample.took_ms for sample in free]
    shown = {**percentiles(name, took, suffix), f"{name}_max{suffix}": round(max(took), 1)}
    if not apart:
        return shown
    delayed = [sample.took_ms for sample in samples if any(pause.delays(sample) for pause in apart)]
    return {
        **shown,
        f"{name}_p99_with_checkpoints{suffix}": p99_ms(samples),
        f"checkpoint_pause_ms_max{suffix}": round(max(delayed, default=0.0), 1),
    }
