"""What the tests share: real servers as fixtures, Kafka in a line, waiting for things to come true."""
