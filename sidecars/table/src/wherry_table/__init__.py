"""Sink sidecar for tables in a DuckDB or SQLite file."""
