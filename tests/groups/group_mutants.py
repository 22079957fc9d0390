"""Named defects of the scripts of groups, which the machines must notice."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager

from machine_run import scripts_changed

#: name → the script file and what of it is changed.
MUTANTS: dict[str, tuple[str, Mapping[str, str]]] = {
    "no generation check": (
        "groups/group",
        {"if generation and generation ~= g.generation then": "if false then"},
    ),
    "a round that keeps its generation": (
        "groups/group",
        {"  next_generation(1)\n  g.protocol = elected()": "  g.protocol = elected()"},
    ),
    "the members of the round before stay owners": (
        "groups/group",
        {"  redis.call('DEL', arrived, assignments)\n  enter(COMPLETING)": "  enter(STABLE)"},
    ),
    "offsets of a live group expire": (
        "groups/group",
        {
            "  if g.state == EMPTY then\n    return now": (
                "  if g.state ~= COMPLETING then\n    return now"
            )
        },
    ),
    "a commit is forgotten": (
        "groups/commit",
        {"for i = 6, #ARGV, 3 do": "for i = 9, #ARGV, 3 do"},
    ),
    "a commit is taken while the group assigns": (
        "groups/commit",
        {"if not why and g.state == COMPLETING then": "if false then"},
    ),
    "sessions never end": (
        "groups/group",
        {"for _, id in ipairs(over) do": "for _, id in ipairs({}) do"},
    ),
    "an instance that came again is not fenced": (
        "groups/group",
        {"      return 'FENCED_INSTANCE_ID'": "      id = current"},
    ),
    "the round waits for nobody": ("groups/group", {"if now < g.until_ms then": "if false then"}),
    "whoever commits by hand is not asked": (
        "groups/commit",
        {"elseif g.state ~= EMPTY then": "elseif false then"},
    ),
    "a server that took over goes on with its generations": (
        "groups/group",
        {"local LOST_GENERATIONS = 10000": "local LOST_GENERATIONS = 1"},
    ),
    "members may be deleted with their group": (
        "groups/remove",
        {"if g.state ~= EMPTY or": "if"},
    ),
}


def mutated(file: str, changes: Mapping[str, str]) -> AbstractContextManager[None]:
    def is_of(name: str) -> bool:
        # Those in front of which `group.lua` is loaded.
        is_of_groups = name.startswith("groups/") and not name.startswith("groups/share/")
        is_alone = name in ("groups/listing", "groups/record")
        return file in (name, "groups/group") and is_of_groups and not is_alone

    return scripts_changed(is_of, changes)
