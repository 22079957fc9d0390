"""Spark's own programs know the format where lakelog is installed: nobody registers anything."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pyspark
import pytest
from spark_log import SparkLog

from lakelog.hot.embedded.java import java_home

pytestmark = pytest.mark.slow

#: As a user writes it, who never imports lakelog.
SCRIPT = """
import json
from pyspark.sql import SparkSession

spark = globals().get("spark") or SparkSession.builder{remote}.getOrCreate()
options = json.loads({options!r})
frame = spark.read.format("lakelog").options(startingOffsets="earliest", **options).load()
print("READ", sorted(row["offset"] for row in frame.select("offset").collect()))
given = ", ".join(f"{{name}} '{{value}}'" for name, value in options.items())
spark.sql(f"CREATE TEMPORARY VIEW orders USING lakelog OPTIONS ({{given}})")
print("COUNT", spark.sql("SELECT count(*) AS records FROM orders").first()["records"])
print("KIND", type(spark).__module__)
"""

CLASSIC, CONNECT = "pyspark.sql.session", "pyspark.sql.connect.session"


def output_of(command: list[str | Path], folder: Path, typed: str | None = None) -> list[str]:
    """The lines that the script printed."""
    home = Path(pyspark.__file__).parent
    done = subprocess.run(
        command,
        cwd=folder,
        env={
            **{name: value for name, value in os.environ.items() if name != "PYTHONSTARTUP"},
            "JAVA_HOME": str(java_home()),
            "SPARK_HOME": str(home),
            "PYSPARK_PYTHON": sys.executable,
            "PYSPARK_DRIVER_PYTHON": sys.executable,
        },
        input=typed,
        stdin=subprocess.DEVNULL if typed is None else None,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    lines = [line.removeprefix(">>> ") for line in done.stdout.splitlines()]
    return [line for line in lines if line.startswith(("READ ", "COUNT ", "KIND "))]


@pytest.fixture
def log(redis_url: str, tmp_path: Path) -> SparkLog:
    """Twenty archived and trimmed records, and five hot ones."""
    made = SparkLog(redis_url, tmp_path / "cold").create()
    made.append(20)
    made.archive()
    made.append(5)
    made.lakelog.close()
    return made


@pytest.mark.parametrize(
    ("program", "remote", "kind"),
    [
        (["spark-submit", "--master", "local[1]"], "", CLASSIC),
        (["pyspark", "--master", "local[1]"], "", CLASSIC),
        ([sys.executable], ".remote('local[1]')", CONNECT),
    ],
    ids=["spark-submit", "pyspark", "connect"],
)
def test_the_log_is_read_by_its_format_alone(
    log: SparkLog, tmp_path: Path, program: list[str], remote: str, kind: str
) -> None:
    text = SCRIPT.format(options=json.dumps(log.options()), remote=remote)
    first, *more = program
    is_spark = first != sys.executable
    command: list[str | Path] = [Path(pyspark.__file__).parent / "bin" / first] if is_spark else []
    command += more if is_spark else program
    if first == "pyspark":
        lines = output_of(command, tmp_path, typed=text)
    else:
        script = tmp_path / "script.py"
        script.write_text(text, "utf-8")
        lines = output_of([*command, script], tmp_path)
    assert lines == [f"READ {list(range(25))}", "COUNT 25", f"KIND {kind}"]
