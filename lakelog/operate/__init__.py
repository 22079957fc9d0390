"""Operating a log: status, doctor, segments, verification, skipping."""
