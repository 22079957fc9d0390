"""The benchmarks, in the order of the tables."""

from __future__ import annotations

#: What others do, too: Kafka, its clients, Spark's source and sink of it.
BESIDE_OTHERS = (
    *("append", "consume", "startup", "hot", "archive", "cleanup", "spark", "sink"),
    "gateway",
)

#: What is measured beside limits and goals alone.
BY_ITSELF = (
    "cold",
    "search",
    "freshness",
    "encryption",
    "frames",
    "limits",
    "many_topics",
    "many_files",
    "many_segments",
)

BENCHMARKS = (*BESIDE_OTHERS, *BY_ITSELF)
