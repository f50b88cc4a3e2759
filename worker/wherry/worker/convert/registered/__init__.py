"""Converters whose schemas live in a schema registry: Avro, Protobuf and JSON Schema, in Confluent's framing.

A record is a zero byte, the four bytes of its schema's id, and the payload. Rows of one id are converted together; the
schema of an id is fetched once. Class names, settings and mappings are those of Confluent's converters.

`client` speaks to the registry, `framing` cuts columns by id and knows what is common to the three.
"""
