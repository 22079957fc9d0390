"""Two archivers of one log: each record is in the table once, none is lost."""

from __future__ import annotations

import signal


def test_two_archivers_and_a_producer_at_once_archive_each_record_once(make_tiers, processes):
    tiers = make_tiers(
        partitions=2, local_retention_ms=0, lakelog_flush_rows=50, internal_segment_bytes=20_000
    )
    archivers = [processes.start(tiers, "continuously") for _ in range(2)]
    for process in archivers:
        assert process.stdout.readline() == "ready\n"
    producer = processes.start(tiers, "produce", "6000")
    assert producer.wait(timeout=120) == 0, producer.stderr.read()
    for process in archivers:
        process.send_signal(signal.SIGTERM)
    for process in archivers:
        output, errors = process.communicate(timeout=120)
        assert process.returncode == 0, errors
        assert output.endswith("drained\n")

    for number in (0, 1):
        wanted = [(n, b"%d/%d" % (number, n)) for n in range(3000)]
        assert tiers.archived(number) == wanted
        assert tiers.seen(number).local_log_start == 3000
