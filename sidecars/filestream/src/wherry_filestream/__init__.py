"""Lines of text files in and out, under Kafka Connect's FileStream class names."""
