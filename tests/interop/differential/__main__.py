"""Random workloads against a real Kafka broker and lakelog; exit code 1 if they tell them apart.

python -m tests.interop.differential --bootstrap-servers 127.0.0.1:9092 --workloads 300

With ``--gateway`` lakelog is asked through two gateways, by the clients that ask the broker, and
they do more: groups' offsets, settings, and batches whose sequences are right and wrong.
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

from lakelog import Lakelog
from tests.support.servers import RedisServer

from . import recorded
from .compare import Comparison, compare
from .gateway_log import GatewayLog
from .kafka_log import KafkaClients, KafkaLog
from .lakelog_log import LakelogLog
from .workload import draw

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def main() -> int:
    arguments = _arguments()
    seeds = range(arguments.seed, arguments.seed + arguments.workloads)
    again = f"--seed {arguments.seed} --workloads {len(seeds)}{' --gateway' * arguments.gateway}"
    print(f"to repeat: {again}", flush=True)
    counts: Counter[str] = Counter()
    lines: list[dict[str, Any]] = []
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = RedisServer(folder / "redis").start()
        stack.callback(redis.kill)
        lake = Lakelog.connect(redis.url, str(folder / "cold"), engine="inline")
        stack.callback(lake.close)
        servers = [arguments.bootstrap_servers]
        if arguments.gateway:
            gateways = [stack.enter_context(lake.gateway("127.0.0.1:0")) for _ in range(2)]
            servers += [gateway.bootstrap_servers for gateway in gateways]
        clients: queue.SimpleQueue[list[KafkaClients]] = queue.SimpleQueue()
        for number in range(arguments.threads):
            codec = CODECS[number % len(CODECS)] if arguments.gateway else "none"
            clients.put(own := [KafkaClients(one, codec) for one in servers])
            for one in own:
                stack.callback(one.close)

        def run(seed: int) -> list[Comparison]:
            mine = clients.get()
            try:
                workload = draw(seed, for_clients=arguments.gateway)
                begin_ms = time.time_ns() // 1_000_000
                broker, *gateways = mine
                kafka = recorded.Recorder(KafkaLog(broker, workload, begin_ms), workload, begin_ms)
                lakelog = (
                    GatewayLog((gateways[0], gateways[1]), workload, begin_ms, lake)
                    if arguments.gateway
                    else LakelogLog(redis.url, folder / "cold", workload, begin_ms)
                )
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
        recorded.write(lines, recorded.CLIENTS_FILE if arguments.gateway else recorded.FILE)
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
    parser.add_argument("--gateway", action="store_true", help="lakelog by the same clients")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
