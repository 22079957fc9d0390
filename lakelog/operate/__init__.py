"""Operating a log: status, doctor, segments, verification, sizing, skipping."""
