"""Kafka's protocol in front of a log: any of Kafka's clients, unchanged; see its README."""
