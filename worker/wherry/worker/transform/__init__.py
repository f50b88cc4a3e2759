"""Transforms between reader and writer, under the names and with the results of Kafka Connect's.

`registry.chain_of` makes the chain of a connector, `step.Transforms` applies it to batches. A transform works on whole
columns where there is a schema, and without one where `lift` can prove that columns say the same; otherwise row by row.
"""
