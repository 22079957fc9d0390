"""The READMEs show what happens: their Python runs here, their commands are those of the parser,
and their links lead somewhere.
"""

from __future__ import annotations

import ast
import doctest
import json
import posixpath
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from lakelog import LakelogError, errors
from lakelog.cli import help as readme
from lakelog.cli import main as cli
from lakelog.cli.main import COMMANDS
from tests.support.object_store import S3Server

ROOT = Path(__file__).parents[1]

#: By path in the repository.
READMES = {
    file.relative_to(ROOT).as_posix(): file.read_text("utf-8")
    for file in (
        ROOT / "README.md",
        *(
            file
            for folder in ("lakelog", "notebooks", "conf", "tests")
            for file in sorted((ROOT / folder).rglob("README.md"))
        ),
    )
}
OTHERS = {
    file.relative_to(ROOT).as_posix(): file.read_text("utf-8")
    for file in sorted((ROOT / ".github").glob("*.md"))
}

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)


def section_of(path: str, heading: str) -> str:
    """What stands below a heading, up to the next of its kind."""
    _, found = READMES[path].split(f"\n## {heading}\n")
    return found.split("\n## ")[0]


def links(path: str) -> list[str]:
    """The targets of a text's links and pictures; what stands in code is none."""
    text = FENCE.sub("", {**READMES, **OTHERS}[path])
    return re.findall(r"\]\(([^)]*)\)", re.sub(r"`[^`\n]*`(?!\])", "", text))


def test_a_readme_stands_where_it_is_looked_for() -> None:
    folders = {posixpath.dirname(path) for path in READMES}
    stages = {"spark", "cold", "hot", "read", "archive", "cleanup", "explore", "ingest", "cli"}
    assert {f"lakelog/{stage}" for stage in stages} <= folders
    assert {"", "lakelog", "notebooks", "conf", "tests", "tests/benchmarks"} <= folders


@pytest.mark.parametrize("path", READMES)
def test_a_readme_has_a_title_and_few_lines(path: str) -> None:
    levels = [heading.level for heading in readme.headings(READMES[path])]
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert len(READMES[path].splitlines()) <= (220 if path.startswith("lakelog/") else 260)


@pytest.mark.parametrize("path", [*READMES, *OTHERS])
def test_a_link_leads_to_a_file_and_a_heading_that_are_there(path: str) -> None:
    for target in links(path):
        if target.startswith("https://"):
            continue
        file, _, anchor = target.partition("#")
        there = (ROOT / path).parent / file if file else ROOT / path
        assert there.resolve().is_relative_to(ROOT), target
        assert there.is_file(), target
        if anchor:
            text = there.read_text("utf-8")
            assert anchor in [heading.anchor for heading in readme.headings(text)], target


def test_links_are_found() -> None:
    assert "lakelog/cold/README.md#object-stores" in links("README.md")
    assert "../../.github/explorer.png" in links("lakelog/explore/README.md")
    assert len(links("README.md")) > 20


def test_the_first_readme_leads_to_all_others() -> None:
    linked = {target.partition("#")[0] for target in links("README.md")}
    assert {*READMES} - linked == {"README.md"}


def test_headings_are_links_anchors_as_github_spells_them() -> None:
    text = "# A\n\n## Names, views & `x_y`\n```\n# no heading\n```\n### The log's-end\n"
    assert [heading.anchor for heading in readme.headings(text)] == [
        "a",
        "names-views--x_y",
        "the-logs-end",
    ]


def test_every_topic_has_a_name_of_its_own() -> None:
    pages = readme.pages()
    assert [page.path for page in pages.values()] == sorted(
        (path for path in READMES if path.startswith("lakelog/")),
        key=lambda path: (path != "lakelog/README.md", Path(path)),
    )
    names = [*pages]
    for page in pages.values():
        headings = readme.headings(page.text)[1:]
        names += [heading.anchor for heading in headings if heading.anchor != page.name]
    assert len(names) == len(set(names))
    assert set(readme.topics(pages)) == set(names)


class AnyNumbers(doctest.OutputChecker):
    """Numbers of the demo's log vary from run to run: a flight without a tail number goes to
    whichever partition is next. Everything else must match.
    """

    def check_output(self, want: str, got: str, optionflags: int) -> bool:
        want, got = (re.sub(r"\d[\d,]*", "N", text) for text in (want, got))
        return super().check_output(want, got, optionflags)


def run_section(
    path: str,
    heading: str,
    checker: doctest.OutputChecker | None = None,
    *,
    places: Mapping[str, str] | None = None,
    **names: object,
) -> None:
    """Run what it shows; `places` are what stands in the code, and what it is here."""
    section = section_of(path, heading)
    code = "\n".join(re.findall(r"```python\n(.*?)```", section, re.DOTALL))
    for shown, here in (places or {}).items():
        assert shown in code
        code = code.replace(shown, here)
    test = doctest.DocTestParser().get_doctest(code, names, heading, path, 0)
    assert len(test.examples) > 5
    said: list[str] = []
    runner = doctest.DocTestRunner(checker, verbose=False, optionflags=doctest.ELLIPSIS)
    runner.run(test, out=said.append)
    assert runner.failures == 0, "".join(said)


#: What runs in any folder; the tests below them give others what they need.
EXAMPLES = [
    ("lakelog/ingest/README.md", "Rows of a frame"),
    ("lakelog/read/README.md", "Without Redis"),
    ("lakelog/read/README.md", "Search"),
    ("lakelog/read/README.md", "Consumers"),
    ("lakelog/read/README.md", "SQL"),
    ("lakelog/gateway/README.md", "A client of Kafka in Python"),
    ("lakelog/groups/README.md", "Read together"),
    ("lakelog/groups/README.md", "Moving offsets"),
    ("lakelog/groups/share/README.md", "A queue of jobs"),
    ("lakelog/groups/README.md", "Kept in the cold tier too"),
    ("lakelog/operate/README.md", "Check"),
    ("lakelog/operate/acl/README.md", "Rights in Python"),
    ("lakelog/operate/README.md", "Skip"),
    ("lakelog/operate/erasure/README.md", "In Python"),
    ("lakelog/operate/metrics/README.md", "Metrics in Python"),
    ("lakelog/tracing/README.md", "Spans and trace contexts"),
    ("lakelog/place/tenants/README.md", "Tenants in Python"),
    ("lakelog/operate/transfer/README.md", "Export, import"),
    ("lakelog/codec/README.md", "Other formats"),
    ("lakelog/explore/README.md", "Explore"),
    ("lakelog/explore/README.md", "Charts"),
    ("lakelog/jobs/README.md", "What runs leave behind"),
    ("lakelog/jobs/README.md", "The list of runs"),
]


#: Likewise, with a Spark.
WITH_SPARK = [
    ("README.md", "Fifteen lines of Python"),
    ("lakelog/cleanup/README.md", "A cleanup in Python"),
    ("lakelog/cleanup/README.md", "Deleted topics"),
    ("lakelog/codec/README.md", "Typed columns"),
]


@pytest.mark.parametrize(("path", "heading"), EXAMPLES)
def test_an_example_prints_what_it_shows(
    path: str, heading: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_section(path, heading)


@pytest.mark.parametrize(("path", "heading"), WITH_SPARK)
def test_an_example_with_spark_prints_what_it_shows(
    path: str, heading: str, spark: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run_section(path, heading)


def test_a_log_in_an_object_store_is_what_it_shows(
    s3_server: S3Server, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("S3_SECRET", "a secret word")
    places = {"redis://localhost:6379": redis_url, "http://localhost:9000": s3_server.url}
    run_section("lakelog/cold/README.md", "Object stores", places=places)


def test_a_plain_redis_client_reads_what_it_shows(
    redis_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    places = {"redis://localhost:6379": redis_url}
    run_section("lakelog/hot/README.md", "With a plain Redis client", places=places)


def test_values_are_encrypted_as_it_shows(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("NEW_KEY", "")  # both are put back afterwards
    monkeypatch.setenv("ORDERS_KEY", "")
    run_section("lakelog/codec/encryption/README.md", "Encrypting a topic")


def test_it_names_every_notebook_with_its_own_parameters() -> None:
    section = READMES["notebooks/README.md"]
    shown = dict(re.findall(r"^\| `(\w+)` \| .+ \| .* \| (.+) \|$", section, re.MULTILINE))
    common = set(re.findall(r"`(\w+)`", section.split("The others also take")[1][:200]))
    notebooks = sorted((ROOT / "notebooks").glob("*.ipynb"))
    assert [*shown] == [notebook.stem for notebook in notebooks]
    for notebook in notebooks:
        text = "".join(json.loads(notebook.read_text("utf-8"))["cells"][0]["source"])
        taken = set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
        own = set(re.findall(r"`(\w+)`", shown[notebook.stem]))
        assert taken - (common - own) == own, notebook.stem


def test_spark_does_what_it_shows(spark: Any, redis_url: str, tmp_path: Path) -> None:
    path = "lakelog/spark/README.md"
    run_section(path, "Reading from Spark", redis_url=redis_url, folder=tmp_path / "read")
    run_section(path, "Writing from Spark", redis_url=redis_url, folder=tmp_path / "write")


def test_names_and_views_are_what_it_shows(spark: Any, redis_url: str, tmp_path: Path) -> None:
    path = "lakelog/spark/catalog/README.md"
    run_section(path, "Names and views in a catalog", redis_url=redis_url, folder=tmp_path)


def test_tables_by_name_are_what_it_shows(spark: Any, redis_url: str, tmp_path: Path) -> None:
    spark.sql(f"CREATE SCHEMA logs LOCATION '{tmp_path}/logs'")
    run_section(
        "lakelog/spark/catalog/README.md", "Tables by name", redis_url=redis_url, folder=tmp_path
    )
    spark.sql("DROP SCHEMA logs CASCADE")


def test_the_demo_prints_what_it_shows_and_its_data_can_be_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "lakelog.cli.main",
            "demo",
            "--dir",
            "flights",
            "--engine",
            "inline",
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    shown = READMES["README.md"].split("```\n336,776 flights")[1].split("```")[0]
    printed = done.stdout.split("336,776 flights")[1]
    assert words(shown) == words(printed.split("The log lies in")[0].split("Nothing was kept")[0])
    run_section("lakelog/cold/README.md", "A look-up in two steps", AnyNumbers())


def words(text: str) -> list[str]:
    """What the demo says, without its numbers, times, tail numbers and rules."""
    text = text.split("Nothing was kept")[0]
    text = re.sub(r"\b[N\d][\w:+.,-]*\d\w*\b|[\d,.]+|─+|[\[\])]", " ", text)
    return text.split()


def commands() -> list[tuple[str, str]]:
    """The lines of each README that call lakelog, without what is told beside them."""
    return [
        (path, re.split(r"\s{2,}| [<|] ", line)[0].removeprefix("lakelog "))
        for path, text in READMES.items()
        for language, code in FENCE.findall(text)
        if not language
        for line in code.splitlines()
        if line.startswith("lakelog ")
    ]


def test_commands_are_found() -> None:
    said = {command.split()[0] for path, command in commands() if path == "README.md"}
    assert {"--help", "doctor", "--dir", "--cold", "acl", "help"} <= said
    assert len(commands()) > 20


@pytest.mark.parametrize(("path", "command"), commands())
def test_a_command_it_shows_is_one(path: str, command: str) -> None:
    arguments = shlex.split(command)
    if "--help" in arguments:
        with pytest.raises(SystemExit) as exit_:
            cli.main(arguments)
        assert exit_.value.code == 0
    else:
        assert callable(cli.parser().parse_args(arguments).run)


def test_the_first_readmes_commands_run_in_its_order_in_one_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After its Python, as somebody types them who reads on."""
    monkeypatch.setenv("LAKELOG_ENGINE", "inline")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "README.md").write_text(READMES["README.md"], "utf-8")
    shutil.copytree(ROOT / "conf" / "topics", tmp_path / "conf" / "topics")
    run_section("README.md", "Fifteen lines of Python")
    shown = [
        re.split(r"\s{2,}", line)[0]
        for line in section_of("README.md", "On the command line").splitlines()
        if line.startswith("lakelog ")
    ]
    own = [line for line in shown if not re.search(r"://|URL|--databricks", line)]
    assert len(own) > 25
    for line in own:
        if "<" in line:  # a shell's
            command = [f"{shlex.quote(sys.executable)} -m {line}"]
            subprocess.run(command, shell=True, check=True, timeout=300)
        else:
            assert code_of(shlex.split(line)[1:]) == 0, line


def code_of(arguments: list[str]) -> int:
    try:
        return cli.main(arguments)
    except SystemExit as exit_:  # what argparse does after a help text
        return int(exit_.code or 0)


def test_the_first_readme_shows_each_command() -> None:
    shown = " ".join(command for path, command in commands() if path == "README.md")
    assert COMMANDS.keys() - set(shown.split()) <= {"demo"}
    assert "lakelog demo" in READMES["README.md"]


def test_every_example_is_run_by_a_test_here() -> None:
    shown = {
        (path, section.splitlines()[0])
        for path, text in READMES.items()
        for section in re.split(r"^## ", text, flags=re.MULTILINE)
        if "```python\n" in section
    }
    run = {*EXAMPLES, *WITH_SPARK}
    for test in ast.parse(Path(__file__).read_text("utf-8")).body:
        for node in ast.walk(test):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "run_section":
                file, heading = node.args[:2]
                if isinstance(heading, ast.Name):
                    continue  # one of the tables
                given = [one for one in ast.walk(test) if isinstance(one, ast.Assign)]
                names = {ast.unparse(one.targets[0]): one.value for one in given}
                run.add(tuple(map(ast.literal_eval, (names.get(ast.unparse(file), file), heading))))
    assert run == shown
    assert len(shown) > 10


def test_ci_runs_the_test_command_it_shows() -> None:
    shown = section_of("README.md", "Tests").split("```")[1].strip()
    assert shown == READMES["tests/README.md"].split("```")[1].strip()
    run = (ROOT / ".ci" / "run").read_text("utf-8")
    steps = [shlex.split(step) for step in shown.split("&&")]
    lines = [  # `uv pip …`, which is quicker, has pip's own command behind it
        shlex.split(command, comments=True)
        for line in run.splitlines()
        for command in line.split(" || ")
    ]
    for step in steps:
        assert any([word for word in line if word != "--quiet"] == step for line in lines), step


def test_it_names_every_folder() -> None:
    section = OTHERS[".github/CONTRIBUTING.md"].split("\n## What stands where\n")[1]
    for folder in sorted((ROOT / "lakelog").iterdir()):
        if folder.is_dir() and folder.name != "__pycache__":
            assert f"{folder.name}/" in section, folder.name


def test_every_error_is_in_the_table_and_says_whether_it_is_retriable():
    section = section_of("lakelog/README.md", "Errors")
    told = re.findall(r"^\| `(\w+)` \| (yes|) ?\| .+ \|$", section, re.MULTILINE)
    public = {
        name: error.retriable
        for name, error in vars(errors).items()
        if isinstance(error, type)
        and issubclass(error, LakelogError)
        and error is not LakelogError
        and name == error.__name__  # another is an earlier name
    }
    assert {name: bool(retriable) for name, retriable in told} == public
    assert len(told) == len(public)
