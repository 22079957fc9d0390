"""Random workloads against a real Kafka broker and lakelog; exit code 1 if they tell them apart.

python -m tests.interop.differential --bootstrap-servers 127.0.0.1:9092 --workloads 300
"""

from __future__ import annotations

import argparse
import contextlib
import json
import queue
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor, as_completed
from pathlib import Path
from typing import Any

from tests.support.servers import RedisServer

from . import recorded
from .compare import Comparison, compare
from .kafka_log import KafkaClients, KafkaLog
from .lakelog_log import LakelogLog
from .workload import draw


def main() -> int:
    arguments = _arguments()
    seeds = range(arguments.seed, arguments.seed + arguments.workloads)
    print(f"{len(seeds)} workloads from seed {arguments.seed}", flush=True)
    counts: Counter[str] = Counter()
    lines: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = RedisServer(folder / "redis").start()
        stack.callback(redis.kill)
        clients: queue.SimpleQueue[KafkaClients] = queue.SimpleQueue()
        for _ in range(arguments.threads):
            clients.put(one := KafkaClients(arguments.bootstrap_servers))
            stack.callback(one.close)

        def run(seed: int) -> list[Comparison]:
            mine = clients.get()
            try:
                workload, begin_ms = draw(seed), time.time_ns() // 1_000_000
                kafka = recorded.Recorder(KafkaLog(mine, workload, begin_ms), workload, begin_ms)
                lakelog = LakelogLog(redis.url, folder / "cold", workload, begin_ms)
                done = list(compare(workload, kafka, lakelog))
                lines.append(kafka.line())
                kafka.close()
                lakelog.close()
                return done
            finally:
                clients.put(mine)

        threads = stack.enter_context(ThreadPoolExecutor(arguments.threads))
        running = {threads.submit(run, seed): seed for seed in seeds}
        for number, future in enumerate(as_completed(running), 1):
            counts.update(_counted(future.result()))
            if number % 20 == 0 or number == len(seeds):
                print(f"  {number} of {len(seeds)}: {counts['answers']:,} answers", flush=True)
    if arguments.record:
        recorded.write(lines)
    for name, count in sorted(counts.items()):
        print(f"{name:40} {count:>8,}")
    return 1 if counts["unexplained"] else 0


def _counted(done: list[Comparison]) -> Iterator[str]:
    yield "workloads"
    for one in done:
        yield "answers"
        if one.is_unexplained:
            yield "unexplained"
            print(f"seed {one.seed}, step {one.step_number} {one.step}: {one.question}")
            for name, answer in (("Kafka", one.kafka), ("lakelog", one.lakelog)):
                print(f"  {name:8}{json.dumps(answer)[:1500]}", flush=True)
        elif one.oddity:
            yield f"oddity: {one.oddity}"
        else:
            yield "the same"


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.interop.differential", description=__doc__
    )
    parser.add_argument("--bootstrap-servers", required=True, help="a Kafka broker, HOST:PORT")
    parser.add_argument("--workloads", type=int, default=300)
    parser.add_argument("--seed", type=int, default=time.time_ns() // 1_000_000_000)
    parser.add_argument("--threads", type=int, default=12, help="workloads at once")
    parser.add_argument("--record", action="store_true", help="keep the broker's answers for tests")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
