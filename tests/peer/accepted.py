"""The differences from Kafka Connect that are wanted, each with its reason. Whatever is not here is a fault."""

from __future__ import annotations

from tests.peer.compare import Accepted

ACCEPTED: tuple[Accepted, ...] = (
    Accepted("root", r"body\.commit", "Kafka's commit is not ours."),
    Accepted(".*", r"body.*\.documentation", "Told in our words; no client compares them."),
    Accepted(".*", r"body.*\.version", "The version of our plugin, not that of Kafka's."),
    Accepted("(source|sink) keys", r"body\[\d\]\.default_value", "The version of our plugin, not that of Kafka's."),
    Accepted("validate .*", r"body\.configs\[2\]\..*", "The version of our plugin, not that of Kafka's."),
    Accepted(
        "validate .*",
        r"body\.configs\[[579]\]\.value\.recommended_values",
        "The converters that are there; the number converters come later.",
    ),
    Accepted(
        "create without class", r"body\.message", "Kafka Connect prints all values, secrets too; we name the keys."
    ),
    Accepted(
        "restart a task that was",
        "status|body.*",
        "Kafka Connect says for ever that a rebalance goes on; there is no such task, which is what we say.",
    ),
)
