"""``python -m tests.benchmarks [NAME…]``: one table beside the peers, and a JSON of every round."""

from __future__ import annotations

import argparse
import importlib
import os
import sys
import time
import traceback
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack
from datetime import datetime, timezone
from pathlib import Path

from . import readme
from .bench import Bench, in_short, temporary_folder
from .kafka_peer import KafkaPeer
from .local_spark import LocalSpark
from .machine import look
from .measures import Row
from .names import BENCHMARKS
from .report import HEAD, Report, changes, lines


def main() -> int:
    # An installed package is compiled once. With this set every process that is timed,
    # also Spark's workers, would compile lakelog anew, but not the libraries beside it.
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
    sys.dont_write_bytecode = False
    given = _arguments()
    if given.write_readme:
        readme.write(Report.of_json(given.write_readme.read_text("utf-8")))
        return 0
    machine = look()
    print(f"{machine.sentence()}\n", flush=True)
    print(HEAD, flush=True)
    day = datetime.now(timezone.utc).date().isoformat()
    found: dict[str, Sequence[Row]] = {}
    failed: list[str] = []
    report = Report(machine, day, given.rounds, given.scale, found, failed)
    given.json.write_text(report.to_json(), "utf-8")
    for name, rows in _measured(given, given.names or BENCHMARKS, failed):
        found[name] = rows
        given.json.write_text(report.to_json(), "utf-8")  # now: a run takes long, and may be ended
    missed = list(report.missed())
    slower = []
    if given.compare:
        before = Report.of_json(given.compare.read_text("utf-8"))
        slower = [str(one) for one in changes(before, report) if one.is_slower]
        for one in changes(before, report):
            if one.is_faster:
                print(f"faster: {one}", file=sys.stderr)
    for what, those in (("missed", missed), ("slower", slower), ("not measured", failed)):
        for one in those:
            print(f"{what}: {one}", file=sys.stderr)
    return 1 if missed or slower or failed else 0


def _measured(
    given: argparse.Namespace, names: Iterable[str], failed: list[str]
) -> Iterator[tuple[str, list[Row]]]:
    """The rows of each benchmark, printed as they come. What fails is added to `failed`."""
    kafka = None
    if given.peers:
        kafka = KafkaPeer(given.bootstrap_servers, given.kafka_tool, given.kafka_log)
    with ExitStack() as stack:
        if kafka is not None:
            stack.callback(kafka.close)
        folder = stack.enter_context(temporary_folder())
        spark = LocalSpark(folder, given.kafka_jars)
        stack.callback(spark.stop)
        for name in names:
            module = importlib.import_module(f".{name}", __package__)
            found: list[Row] = []
            with temporary_folder() as place:
                bench = Bench(place, spark, given.rounds, given.scale, kafka)
                try:
                    for row in module.rows(bench):
                        found.append(row)
                        print("\n".join(lines(row)), flush=True)
                except Exception as error:  # of one benchmark: the others go on
                    traceback.print_exc(file=sys.stderr)
                    failed.append(f"`{name}`: {in_short(error)}")
                    continue
            failed += (f"`{name}`, {one}" for one in bench.failed)
            yield name, found


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks",
        description="Measures lakelog beside its peers and its limits. Prints one Markdown table, "
        "writes one JSON, and exits with 1 where a goal is missed or something became slower. A "
        "row or a side that needs what is not given is left out.",
        epilog="All lies in the folder for temporary files, several GB: TMPDIR names another. "
        "Examples: `python -m tests.benchmarks append --peers --bootstrap-servers "
        "localhost:9092`; `python -m tests.benchmarks --compare tests/benchmarks/results.json`",
    )
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(BENCHMARKS)}")
    parser.add_argument("--peers", action="store_true", help="measure Kafka's side, too")
    parser.add_argument("--bootstrap-servers", metavar="HOST:PORT", help="of a broker, for --peers")
    parser.add_argument(
        "--kafka-tool",
        type=Path,
        metavar="PROGRAM",
        help="runs a class of Kafka's own tools, whose producer and consumer are measured then",
    )
    parser.add_argument(
        "--kafka-log",
        type=Path,
        metavar="FILE",
        help="which the broker writes: without it, `cleanup` is not measured beside its cleaner",
    )
    parser.add_argument(
        "--kafka-jars",
        default="",
        metavar="JARS",
        help="of Spark's Kafka connector, with commas between them: without them, `spark` and "
        "`sink` are not measured beside Spark's Kafka source and sink",
    )
    parser.add_argument(
        "--rounds",
        type=int,
        default=5,
        help="of each side (default: 5); what takes minutes has 3 at most",
    )
    parser.add_argument("--scale", type=float, default=1.0, help="of all counts (default: 1)")
    parser.add_argument(
        "--json",
        type=Path,
        default=Path(f"benchmarks-{time.strftime('%Y%m%d-%H%M%S')}.json"),
        metavar="FILE",
        help="where the figures of every round go (default: one in this folder, by the time)",
    )
    parser.add_argument(
        "--compare", type=Path, metavar="JSON", help="an earlier run's: names what became slower"
    )
    parser.add_argument(
        "--write-readme",
        type=Path,
        metavar="JSON",
        help="measure nothing; write the table and the chart of the README from a run's figures",
    )
    given = parser.parse_args()
    unknown = sorted(set(given.names) - set(BENCHMARKS))
    if unknown:
        parser.error(f"there is no benchmark {unknown[0]!r}; there are {', '.join(BENCHMARKS)}")
    if given.peers and not given.bootstrap_servers:
        parser.error("--peers needs a broker: --bootstrap-servers HOST:PORT")
    if given.rounds < 1 or given.scale <= 0:
        parser.error("--rounds is at least 1, and --scale above 0")
    for file in (given.compare, given.write_readme, given.kafka_log):
        if file is not None and not file.is_file():
            parser.error(f"there is no file {file}")
    for jar in filter(None, given.kafka_jars.split(",")):
        if not Path(jar).is_file():
            parser.error(f"there is no file {jar}")
    return given


if __name__ == "__main__":
    sys.exit(main())
