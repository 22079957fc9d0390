"""What tells how a log stands and keeps it going: status, doctor, segments, sizing, quarantine."""
