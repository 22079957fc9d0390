"""Share groups: members that take records of a topic from one queue (Kafka's KIP-932)."""
