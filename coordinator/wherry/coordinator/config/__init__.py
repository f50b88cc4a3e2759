"""Worker files, connector configurations, client settings: Kafka's keys, defaults and error texts."""
