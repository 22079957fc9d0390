"""Which commands there are. The file of one is imported once its name is typed."""

from __future__ import annotations

import argparse
from collections.abc import Container
from importlib import import_module

from .options import Offer

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
    "hot": "pause and resume around a planned stop of Redis",
    "acl": "the least rights of a role, for Redis and the object store",
    "doctor": "what is missing or risky, and the command that mends it",
    "help": "read about a topic: spark, object-stores, errors, …",
}

#: The files of commands that have none of their own name.
FILES = {
    "grep": "consume",
    "history": "status",
    "restore": "transfer",
    "export": "transfer",
    "import": "transfer",
    "share-groups": "groups",
    "delete-records": "delete_records",
}


def add_commands(
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
