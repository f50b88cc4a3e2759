"""The differences from Kafka Connect that are wanted, each with its reason. Whatever is not here is a fault."""

from __future__ import annotations

from tests.peer.compare import Accepted

ACCEPTED: tuple[Accepted, ...] = (
    Accepted("root|.*: GET /", r"body\.commit", "Kafka's commit is not ours."),
    Accepted(".*", r"body.*\.documentation", "Told in our words; no client compares them."),
    Accepted(
        "(create|put|validate) (without class|null class|nothing)|type .* read",
        r"body\.message",
        "Kafka Connect prints all values, secrets too; we name the keys.",
    ),
    Accepted(
        "(put|validate) (empty class|unknown class|class that is a converter)",
        r"body\.message",
        "The list of what is installed is another, and Kafka Connect's is that of a Java object.",
    ),
    Accepted(
        "validate .*",
        r"body\.configs\[\d+\]\.value\.recommended_values",
        "The converters that are there: those of a schema registry come with Wherry.",
    ),
    Accepted("put class with blanks", ".*", "Kafka Connect's validation lets blanks pass, its create does not."),
    Accepted(
        "coded name .*|odd path .*",
        ".*",
        "A web server's own page; we answer as to any wrong request, and names "
        "with such characters can be reached and deleted.",
    ),
    Accepted("create 'semi.*", "Location", "Kafka Connect's leads to another connector: it leaves the ; as it is."),
    Accepted("validate source: plugin version missing", ".*", "Kafka Connect's second answer to it is an NPE."),
    Accepted("keys of java.lang.String", ".*", "No such class is known here; Kafka Connect tries to make one: 500."),
    Accepted(
        "validate source: converter no converter", r"body\..*", "No such class is known here, so that it is not found."
    ),
    Accepted(
        "validate s.*: (offsets topic|dead letters) null", ".*", "A null is told as one; Kafka Connect: 500, an NPE."
    ),
    Accepted(
        "validate source: topic null", r"body\..*", "What is required may not be null; Kafka Connect fails later."
    ),
    Accepted(
        "validate source: override class", ".*", "Java's classes mean nothing to our clients; they are left alone."
    ),
    Accepted(
        "(validate|refuse) sink: regex (broken.*|null)", r"body\..*", "What is wrong in a regex is told by Python."
    ),
    Accepted(
        "restart a task that was",
        "status|body.*",
        "Kafka Connect says for ever that a rebalance goes on; there is no such task, which is what we say.",
    ),
)
