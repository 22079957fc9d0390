"""lakelog: a Kafka-shaped log on Redis Streams and Delta Lake."""
