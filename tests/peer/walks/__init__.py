"""Random walks of an operator through the lives of connectors, on the real Kafka Connect and on Wherry."""
