"""The sidecar host: one small supervisor per machine that starts, limits, watches and stops sidecars.

Run it with `python -m wherry.worker.host --socket PATH --parent-pid PID`. It imports neither Spark, Arrow nor Kafka.
"""
