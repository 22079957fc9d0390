"""The `lakelog` command: a command returns values, `output` alone prints them.

The file of a command is imported once its name is typed, and nothing heavy until it runs, so that
``--help`` answers at once.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import logging
import os
import re
import signal
import sys
from collections.abc import Container, Sequence
from importlib import import_module
from typing import Any, NoReturn

from . import output, recorded
from .options import Offer, add_common
from .progress import spark_start_said
from .quiet_start import quiet_start

#: What each command does, in the order of ``lakelog --help``.
COMMANDS = {
    "demo": "see it work on 336,776 flights",
    "topics": "create, list, describe, alter, delete, apply, …",
    "tenants": "keyspaces with a directory and quotas of their own",
    "produce": "append records from standard input",
    "consume": "print or search records, by offset or by time, or follow the tail",
    "grep": "records of any topics that have a text in key or value",
    "sql": "a query over topics as tables, by DuckDB",
    "offsets": "the offset at a time, or where partitions begin and end in either tier",
    "groups": "groups of consumers: who reads what, how far, and moving that",
    "archive": "move records from Redis to Delta",
    "cleanup": "retention, compaction, optimize and vacuum of the cold tier",
    "register": "tables and views of topics, by name in a catalog",
    "delete-records": "forget the records before an offset or a time",
    "erase": "erase the records of a key from both tiers, for good",
    "restore": "bring back topics that Redis has lost",
    "export": "write topics out of the log, as a folder or one file",
    "import": "bring topics in that were exported",
    "status": "ranges, archive lag, gaps and Redis's headroom",
    "history": "who ran what, when, and how it ended",
    "metrics": "sizes, offsets and lags as a table, or for Prometheus",
    "check": "whether all is as it should be, in both tiers, and mend what can be",
    "segments": "segments of either tier: list, look into, verify",
    "share-groups": "share groups: who holds what of the queue, and where it begins",
    "skip": "take a bad entry or file out, so that others go on: add, list",
    "gateway": "serve the log to Kafka's clients, on a port",
    "explore": "look at the log with a browser, on a page of its own",
    "hot": "pause and resume around a planned stop of Redis",
    "acl": "the least rights of a role, for Redis and the object store",
    "doctor": "what is missing or risky, and the command that mends it",
    "help": "read about a topic: spark, object-stores, errors, …",
}

#: The files of commands that have none of their own name.
FILES = {
    "grep": "consume",
    "history": "status",
    "acl": "doctor",
    "skip": "check",
    "restore": "transfer",
    "export": "transfer",
    "import": "transfer",
    "share-groups": "groups",
    "delete-records": "erase",
}

_DESCRIPTION = "A Kafka-shaped log on Redis Streams and Delta Lake, with no broker to run."

_EPILOG = """\
where the log is:
  --dir DIR                     a directory with a Redis of its own (made when first used)
  --redis URL --cold ROOT       a Redis, and a folder, an object store's URL, or CATALOG.SCHEMA

examples:
  lakelog demo                                   see it work on 336,776 flights
  lakelog --dir ./log topics create orders -p 4  make a topic
  echo hello | lakelog --dir ./log produce orders
  lakelog --dir ./log archive                    Redis → Delta
  lakelog --dir ./log consume orders --from=-10m
  lakelog --dir ./log cleanup plan               what retention and compaction would do, and why
  lakelog --dir ./log status
  lakelog --dir ./log metrics --listen 127.0.0.1:9464
  lakelog --dir ./log check                      whether all is as it should be; --repair
  lakelog help object stores                     read about a topic; lakelog help lists them

LAKELOG_DIR, LAKELOG_REDIS, LAKELOG_COLD, LAKELOG_LOCATION, LAKELOG_KEYSPACE, LAKELOG_TENANT,
LAKELOG_PASSWORD_REF and LAKELOG_ENGINE stand in for the options of those names.
"""


class _CommandLine(argparse.ArgumentParser):
    """Takes a position that begins with a minus as it is, ``--from -10m``."""

    def error(self, message: str) -> NoReturn:
        """Two lines: what is wrong, and where all that is right can be read."""
        hints = [f"\n{hint}" for name, hint in _NAMED_ELSEWHERE.items() if name in message.split()]
        message += "".join(hints)
        self.exit(2, f"{self.prog}: {message}\n`{self.prog} --help` shows how it is used\n")

    #: Whether arguments may stand between options, `TEXT -c TOPIC`.
    is_intermixed = False

    def parse_args(self, args: Any = None, namespace: Any = None) -> Any:
        """The arguments, and as `argv` what was typed."""
        found, unknown = self.parse_known_args(args, namespace)
        if unknown:
            of = getattr(found, "parser", self)  # the command's
            of.error(f"unrecognized arguments: {' '.join(unknown)}")
        found.argv = list(sys.argv[1:] if args is None else args)
        return found

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        joined: list[str] = []
        for argument in sys.argv[1:] if args is None else args:
            if joined and joined[-1] in _TAKES_POSITION and re.match(r"-\d", argument):
                joined[-1] += f"={argument}"
            else:
                joined.append(argument)
        if self.is_intermixed:
            self.is_intermixed = False  # it calls this again
            try:
                return self.parse_known_intermixed_args(joined, namespace)
            finally:
                self.is_intermixed = True
        return super().parse_known_args(joined, namespace)


#: What options of other tools are here.
_NAMED_ELSEWHERE = {
    "--print-data-log": "records are printed by `lakelog segments dump TOPIC -p N --records`",
    "--files": "the files of a partition are shown by `lakelog segments dump TOPIC -p N`",
    "-n": "at most so many: --max N (`segments dump`: --limit N)",
    "--limit": "at most so many: --max N",
    "--max-messages": "at most so many: --max N",
}

#: To argparse, what follows them would be an option if it is -10m.
_TAKES_POSITION = {"--from", "--to", "--before", "--time", "--until", "--shift-by"}


def parser(typed: Container[str] = COMMANDS) -> argparse.ArgumentParser:
    """The command line; every command takes the common options before or after its name.

    Args:
        typed: commands that may be asked for: the others cannot be parsed.
    """
    top = _CommandLine(
        prog="lakelog",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    add_common(top, suppress=False)
    top.add_argument("--version", action="store_true", help="print the version and exit")
    common = argparse.ArgumentParser(add_help=False)
    add_common(common, suppress=True)
    _add_commands(top, common, typed)
    return top


def _add_commands(
    top: argparse.ArgumentParser, common: argparse.ArgumentParser, typed: Container[str]
) -> None:
    """Adds all of `COMMANDS`; those that are not typed by their line of help alone.

    Args:
        common: the options that every command takes.
    """
    commands = top.add_subparsers(dest="command", metavar="COMMAND")
    for name, text in COMMANDS.items():
        if name in typed or "help" in typed:  # which tells of all
            module = import_module(f".{FILES.get(name, name)}", __package__)
            add = getattr(module, f"add_{name.replace('-', '_')}")
            add(Offer(commands, common, name, text))
        else:
            commands.add_parser(name, help=text, add_help=False)


def main(argv: Sequence[str] | None = None) -> int:
    """Runs the command and returns the exit code: 0 done, 1 refused or failed, 2 wrong usage."""
    if "_ARGCOMPLETE" in os.environ:  # a shell asks what could come next
        _complete(parser())
    with quiet_start():
        command_line = parser(sys.argv[1:] if argv is None else argv)
    arguments = command_line.parse_args(argv)
    if arguments.version:
        from ..version import __version__

        print(f"lakelog {__version__}")
        return 0
    if arguments.command is None:
        command_line.print_help()
        return 2
    if arguments.output not in getattr(arguments, "forms", ("text", "json")):
        command_line.error(f"{arguments.command} has no --output {arguments.output}")
    with quiet_start():  # what an interrupt leaves of it would crash the process later
        import_module("msgspec")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):  # escapes, no error, where it has no Unicode
            stream.reconfigure(errors="backslashreplace")
    if not arguments.verbose:  # on Ctrl-C py4j logs the traceback of the call it was in
        logging.getLogger("py4j").setLevel(logging.CRITICAL + 1)
    try:
        try:
            with spark_start_said(verbose=arguments.verbose):
                output.show(arguments.run(arguments), arguments.output)
            recorded.end(arguments, "done")
            code = 0
        except output.Failed as failed:
            recorded.end(arguments, "failed", failed.reason)
            output.show(failed.result, arguments.output)
            if failed.reason:
                print(f"lakelog: {failed.reason}", file=sys.stderr)
            code = failed.code
        sys.stdout.flush()
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        recorded.end(arguments, "stopped")
        signal.signal(signal.SIGINT, signal.SIG_DFL)  # nothing more is to be said: another ends it
        print(getattr(arguments, "when_stopped", "stopped"), file=sys.stderr)
        code = 130
    except Exception as error:
        recorded.end(arguments, "failed", output.describe(error))
        if arguments.verbose:
            raise
        print(f"lakelog: {output.describe(error)}{_option_for(error, arguments)}", file=sys.stderr)
        code = 1
    if getattr(arguments, "abandoned", False):  # threads that an orderly exit would wait for
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)
    return code


def _option_for(error: Exception, arguments: argparse.Namespace) -> str:
    """The command's own option that gives what an error misses; empty if there is none."""
    is_missed = getattr(error, "name", None) == "zone" and getattr(arguments, "zone", "") is None
    return "; as an option, --zone UTC" if is_missed else ""


def _complete(command_line: argparse.ArgumentParser) -> None:
    with contextlib.suppress(ModuleNotFoundError):
        import argcomplete

        argcomplete.autocomplete(command_line)


if __name__ == "__main__":
    sys.exit(main())
