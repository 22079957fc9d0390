"""Consumers that share topics: who reads which partition, and how far each group has come."""
