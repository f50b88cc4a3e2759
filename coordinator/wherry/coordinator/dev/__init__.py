"""Real servers on this machine for development, demonstration and tests: Kafka, Kafka Connect, PostgreSQL.

Nothing heavy is imported here; `wherry.coordinator.dev.kafka` and its neighbours are imported by who needs them.
"""
