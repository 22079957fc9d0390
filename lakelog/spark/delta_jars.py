"""The jars that teach Spark to read Delta, and S3: fetched once, then kept."""

from __future__ import annotations

import hashlib
import logging
import re
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from functools import cache
from importlib import resources
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ..errors import MissingExtraError, SparkUnavailableError
from ..hot.embedded.folders import user_cache
from ..hot.embedded.java import trust_options, trusted_certificates, write_trust_store

SCALA = "2.13"  # the only Scala that Spark 4 is built for
PIP_COMMAND = "pip install 'lakelog[spark]'"

# What Spark brings itself is left out: it would be 70 MB of other versions of the same classes.
_IVY_FILE = """\
<ivy-module version="2.0">
  <info organisation="lakelog" module="jars"/>
  <configurations><conf name="default"/></configurations>
  <dependencies>
{dependencies}
{excludes}
  </dependencies>
</ivy-module>
"""

#: By the Hadoop that Spark brings: the AWS SDK that its S3 client was built with, and Amazon's
#: input stream, which it does not start without. The SDK's modules one by one, since its bundle of
#: all of Amazon's services is 600 MB.
_S3_VERSIONS = {
    "3.4.1": ("2.24.8", None),  # not its 2.24.6, of which there is no transfer manager
    "3.4.2": ("2.29.52", "1.2.1"),
    "3.5.0": ("2.35.4", "1.3.1"),
}
_AWS_MODULES = ("s3", "sts", "s3-transfer-manager")


def delta_jars(java_home: Path, ivy_settings: str | None = None) -> list[Path]:
    """The jars of the installed delta-spark for the installed Spark.

    The first call of a user fetches them from Maven Central through the Ivy that Spark ships (some
    20 MB); later ones find them in the cache and need no network.

    Args:
        java_home: runs Ivy.
        ivy_settings: an ivysettings.xml that names another repository.

    Raises:
        MissingExtraError: pyspark or delta-spark is not installed.
        SparkUnavailableError: they are not in the cache and cannot be fetched, or are not what
            their names say.
    """
    spark, delta = _installed("pyspark"), _installed("delta-spark")
    artifact = f"delta-spark_{'.'.join(spark.split('.')[:2])}_{SCALA}"
    return _kept(
        f"jars-spark-{spark}-delta-{delta}",
        f"the jars of Delta {delta} for Spark {spark}",
        [_dependency("io.delta", artifact, delta)],
        java_home,
        ivy_settings,
    )


def s3_jars(java_home: Path, ivy_settings: str | None = None) -> list[Path]:
    """The jars with which the installed Spark itself opens S3: some 12 MB, fetched like Delta's.

    Raises:
        MissingExtraError: pyspark is not installed.
        SparkUnavailableError: they cannot be fetched, or nobody knows which ones this Spark takes.
    """
    spark, hadoop = _installed("pyspark"), _hadoop_version()
    if hadoop not in _S3_VERSIONS:
        raise SparkUnavailableError(
            f"Spark {spark} comes with Hadoop {hadoop}, and which jars open S3 is known for "
            f"{', '.join(_S3_VERSIONS)}. Name them: session(conf={{'spark.jars': …}}) with "
            f"org.apache.hadoop:hadoop-aws:{hadoop} and what it needs"
        )
    sdk, stream = _S3_VERSIONS[hadoop]
    dependencies = [
        _dependency("org.apache.hadoop", "hadoop-aws", hadoop, alone=True),
        *(_dependency("software.amazon.awssdk", module, sdk) for module in _AWS_MODULES),
    ]
    if stream is not None:
        group = "software.amazon.s3.analyticsaccelerator"
        dependencies.append(_dependency(group, "analyticsaccelerator-s3", stream, alone=True))
    return _kept(
        f"jars-spark-{spark}-s3",
        f"the jars of Hadoop {hadoop} for S3",
        dependencies,
        java_home,
        ivy_settings,
    )


def _dependency(group: str, name: str, version: str, *, alone: bool = False) -> str:
    what = "master" if alone else "default"
    return f'    <dependency org="{group}" name="{name}" rev="{version}" conf="default->{what}"/>'


def _hadoop_version() -> str:
    (jar,) = _spark_jars().glob("hadoop-client-api-*.jar")
    return jar.stem.rpartition("-")[2]


def _spark_jars() -> Path:
    import pyspark

    return Path(pyspark.__file__).parent / "jars"


def _kept(
    name: str, what: str, dependencies: list[str], java_home: Path, ivy_settings: str | None
) -> list[Path]:
    kept = user_cache() / name
    if not kept.is_dir():
        _fetch(java_home, what, dependencies, ivy_settings, kept)
    jars = sorted(kept.glob("*.jar"))
    check_jars(jars)  # each time: the folder is the user's, and may have been changed since
    return jars


def _fetch(
    java_home: Path, what: str, dependencies: list[str], ivy_settings: str | None, kept: Path
) -> None:
    spark_jars = _spark_jars()
    brought = {re.sub(r"-\d.*", "", jar.stem) for jar in spark_jars.glob("*.jar")}
    # Beside its final place, so that the rename at the end is one step.
    with tempfile.TemporaryDirectory(dir=kept.parent, prefix=f"{kept.name}.") as work:
        ivy_file, fresh = Path(work) / "ivy.xml", Path(work) / "jars"
        ivy_file.write_text(
            _IVY_FILE.format(
                dependencies="\n".join(dependencies),
                excludes="\n".join(f'<exclude module="{name}"/>' for name in sorted(brought)),
            )
        )
        ivy = [
            *("-cp", next(spark_jars.glob("ivy-*.jar"))),
            *("org.apache.ivy.Main", "-ivy", ivy_file, "-cache", f"{work}/cache", "-warn"),
            *("-types", "jar", "bundle", "-retrieve", f"{fresh}/[artifact]-[revision].[ext]"),
            *(("-settings", ivy_settings) if ivy_settings else ()),
        ]
        done = _java(java_home, ivy)
        if "PKIX" in done.stdout + done.stderr:
            # A proxy that looks into TLS, whose authority pip trusts and this Java does not know.
            store = Path(work) / "trusted.jks"
            write_trust_store(store, trusted_certificates())
            done = _java(java_home, [*trust_options(store), *ivy])
        if done.returncode != 0 or not fresh.is_dir():
            raise SparkUnavailableError(
                f"{what} are not in {kept.parent} and could not be fetched from Maven Central. "
                f"{_advice(done.stdout + done.stderr)}"
            )
        check_jars(sorted(fresh.glob("*.jar")))
        try:
            fresh.rename(kept)
        except OSError:  # another process was faster
            if not kept.is_dir():
                raise


def _java(java_home: Path, arguments: list[str | Path]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [java_home / "bin" / "java", *arguments],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )


def _advice(said: str) -> str:
    lines = [line.strip() for line in said.splitlines()]
    last = "\n".join([line for line in lines if line.strip(".:-")][-8:])
    advice = (
        "Start Spark once with a network, or name the settings of a repository that you reach: "
        "session(conf={'spark.jars.ivySettings': '/path/to/ivysettings.xml'})"
    )
    if "PKIX" in said:  # an authority that Python does not know either
        advice = (
            "This Java does not trust the certificate it was shown; name a trust store that has "
            "it: JAVA_TOOL_OPTIONS=-Djavax.net.ssl.trustStore=/path/to/cacerts"
        )
    return f"{advice}. Ivy said:\n{last}"


def _installed(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        raise MissingExtraError(
            f"{package} is not installed. Install Spark and Delta with: {PIP_COMMAND}"
        ) from None


logger = logging.getLogger(__name__)


@cache
def known_digests() -> Mapping[str, str]:
    """SHA-256, in hex, by the jar's name."""
    text = (resources.files("lakelog") / "spark/jar_digests.txt").read_text("utf-8")
    lines = [line.split() for line in text.splitlines() if not line.startswith("#")]
    return {name: digest for digest, name in lines}


def check_jars(jars: Sequence[Path]) -> None:
    """Refuse jars that are not what their names say.

    Raises:
        SparkUnavailableError: one has another digest than lakelog knows of it, or cannot be read.
    """
    known = known_digests()
    unknown = []
    for jar in jars:
        if jar.name not in known:
            unknown.append(jar.name)
        elif (found := _digest(jar)) != known[jar.name]:
            raise SparkUnavailableError(
                f"{jar} is not the jar of that name: its SHA-256 is {found}, and lakelog knows it "
                f"as {known[jar.name]}. It was damaged, or somebody changed it: delete the folder "
                f"{jar.parent}, and the next start of Spark fetches it anew. If it comes back so, "
                "the repository that it comes from is not to be trusted"
            )
    if unknown:
        logger.info("lakelog knows no digests of these jars: %s", ", ".join(unknown))


def _digest(jar: Path) -> str:
    sha256 = hashlib.sha256()
    try:
        with jar.open("rb") as content:
            while part := content.read(1 << 20):
                sha256.update(part)
    except OSError as error:
        raise SparkUnavailableError(f"the jar {jar} cannot be read: {error.strerror}") from error
    return sha256.hexdigest()
