"""The log as a state machine: its rules, its harness, and each reader as one question."""
