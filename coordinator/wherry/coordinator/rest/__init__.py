"""Kafka Connect's REST API over a `Herder`: one module per resource, `server.py` starts it."""
