"""A member of a share group in a process of its own.

It takes records of ``jobs`` one by one, says ``got`` of each, accepts it, and says ``done``,
or ``late`` where that was refused. With ``hold`` it takes all it gets, and does nothing more.
"""

from __future__ import annotations

import sys

from lakelog import Lakelog


def main(url: str, cold: str, lock_ms: str, hold: str) -> None:
    lake = Lakelog.connect(url, cold, engine="inline")
    consumer = lake.share_consumer(
        "jobs",
        group_id="workers",
        share_auto_offset_reset="earliest",
        share_acknowledgement_mode="explicit",
        share_record_lock_duration_ms=int(lock_ms),
        share_delivery_count_limit=1_000,
    )
    while True:
        polled = consumer.poll(1_000, 1_000 if hold else 3)
        for records in polled.values():
            for record in records:
                print(f"got {record.partition} {record.offset}", flush=True)
                if not hold:
                    consumer.acknowledge(record)
                    failed = any(consumer.commit_sync().values())
                    said = "late" if failed else "done"
                    print(f"{said} {record.partition} {record.offset}", flush=True)
        if hold and polled:
            sys.stdin.read()


if __name__ == "__main__":
    main(*sys.argv[1:])
