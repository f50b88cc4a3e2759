"""Sink sidecar for SQL databases under the class names of the well-known JDBC sinks; PostgreSQL first."""
