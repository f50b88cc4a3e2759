"""What a lease counts: increments since the last report, and the latency histogram.

Plain mutable numbers, because they are touched once per batch; the reporter turns them into the wire's message. The
owner of a `Counts` hands it over with `take`, which starts the next one, so that nothing is counted twice.
"""

from __future__ import annotations

import dataclasses

# Powers of two of milliseconds: < 1, < 2, < 4 … and the last bucket for all that is slower (over 2^18 ms = 4 min).
LATENCY_BUCKETS = 20


@dataclasses.dataclass(slots=True)
class Counts:
    """Increments, but for the time of the last error; names and units are those of the wire's LeaseCounts."""

    records_read: int = 0
    records_written: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_filtered: int = 0
    failures: int = 0
    errors: int = 0
    skipped: int = 0
    retries: int = 0
    dead_letters: int = 0
    batches: int = 0
    read_time_us: int = 0
    convert_time_us: int = 0
    write_time_us: int = 0
    commit_time_us: int = 0
    commits: int = 0
    logged: int = 0
    dead_letter_failures: int = 0
    last_error_ms: int = 0
    latency_buckets: list[int] = dataclasses.field(default_factory=lambda: [0] * LATENCY_BUCKETS)

    def latency(self, milliseconds: int, rows: int) -> None:
        """Counts rows that took so long from their timestamp until they were handed on."""
        bucket = max(0, milliseconds).bit_length()
        self.latency_buckets[min(bucket, LATENCY_BUCKETS - 1)] += rows

    def take(self) -> Counts:
        """Returns what was counted and starts again from zero."""
        taken = dataclasses.replace(self)
        fresh = Counts()
        for field in dataclasses.fields(Counts):
            setattr(self, field.name, getattr(fresh, field.name))
        return taken
