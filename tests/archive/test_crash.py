"""Killed anywhere, raced by another process: each record is in the table once, none is lost."""

from __future__ import annotations

import signal

import pytest

from lakelog import failpoints


@pytest.mark.parametrize("first_run", [True, False], ids=["first run", "later run"])
@pytest.mark.parametrize(
    "step", [name for name in failpoints.NAMES if name.startswith(("archive.", "cold."))]
)
def test_a_process_killed_at_any_step_is_settled_by_the_next_run(
    make_tiers, processes, step, first_run
):
    tiers = make_tiers(partitions=2, local_retention_ms=0)
    for number in (0, 1):
        tiers.append(30, number)
    if not first_run:
        tiers.archiver().run_once()
    for number in (0, 1):
        tiers.append(120, number)

    process = processes.start(tiers, "once", failpoint=step)
    assert process.wait(timeout=60) == failpoints.KILLED, process.stderr.read()

    for number in (0, 1):  # whatever was done until then, the log still has each record
        in_cold = {offset for offset, _ in tiers.archived(number)}
        seen = tiers.seen(number)
        assert in_cold | set(range(seen.local_log_start, seen.log_end)) == set(range(150))
    tiers.append(10)
    tiers.archiver().run_once()
    for number in (0, 1):
        assert tiers.archived(number) == tiers.expected(number)
        assert tiers.seen(number).local_log_start == tiers.seen(number).log_end
        assert tiers.seen(number).unarchived_since_ms is None
    assert len(tiers.parquet_files()) == len(tiers.delta().file_uris())  # the orphans are gone


def test_killed_before_the_trim_both_tiers_hold_the_records(make_tiers, processes):
    tiers = make_tiers(local_retention_ms=0)
    tiers.append(120)

    process = processes.start(tiers, "once", failpoint="archive.before_trim")
    assert process.wait(timeout=60) == failpoints.KILLED

    assert tiers.archived() == tiers.expected()
    assert tiers.seen().local_log_start == 0
    version = tiers.version()
    report = tiers.archiver().run_once()
    assert report.partitions == ()
    assert tiers.seen().local_log_start == 120
    assert tiers.version() == version


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
