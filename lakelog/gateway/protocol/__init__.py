"""Kafka's messages as bytes: ``messages`` by versions, ``wire`` in frames, ``codes`` of errors."""
