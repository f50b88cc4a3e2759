"""Random records through random configurations, on Kafka Connect and on Wherry, and what comes out compared."""
