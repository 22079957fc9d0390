"""Kafka's network protocol, spoken to clients of Kafka by a process that reads and writes a log."""
