"""The same calls to a Kafka broker and to lakelog; exit code 1 if the answers differ.

python -m tests.interop.group_script --bootstrap-servers 127.0.0.1:9092 --tool PATH

PATH is a command that runs a class of Kafka's tools, such as ``kafka-run-class.sh``.
"""

from __future__ import annotations

import argparse
import contextlib
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.support.servers import RedisServer

from . import recorded
from .differences import explained
from .scenarios import SCENARIOS
from .sides import KafkaSide, LakelogSide


def main() -> int:
    arguments = _arguments()
    unlike = 0
    theirs: dict[str, dict[str, Any]] = recorded.read() if recorded.FILE.exists() else {}
    with contextlib.ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory()))
        redis = RedisServer(folder / "redis").start()
        stack.callback(redis.kill)
        kafka = KafkaSide(arguments.bootstrap_servers, arguments.tool)
        stack.callback(kafka.close)
        lakelog = LakelogSide(redis.url, folder / "cold")
        stack.callback(lakelog.close)
        for name in arguments.scenario or SCENARIOS:
            theirs[name] = dict(SCENARIOS[name](kafka, folder))
            ours = dict(SCENARIOS[name](lakelog, folder))
            print(f"{name}: {len(ours)} answers", flush=True)
            for question, answer in ours.items():
                if not explained(name, question, theirs[name].get(question), answer):
                    unlike += 1
                    print(f"  {question}\n    Kafka   {theirs[name].get(question)}")
                    print(f"    lakelog {answer}", flush=True)
    if arguments.record:
        recorded.write(theirs)
    print(f"{unlike} unexplained")
    return 1 if unlike else 0


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m tests.interop.group_script")
    parser.add_argument("--bootstrap-servers", required=True, metavar="HOST:PORT")
    parser.add_argument("--tool", required=True, metavar="PATH")
    parser.add_argument("--scenario", action="append", choices=list(SCENARIOS))
    parser.add_argument("--record", action="store_true", help="keep the broker's answers")
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
