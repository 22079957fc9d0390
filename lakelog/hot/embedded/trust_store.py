"""A Java trust store of the certificate authorities that Python trusts.

A Java from a wheel brings its own list. Behind a proxy that looks into TLS, the proxy's authority
is known to the system and to pip, but not to that Java. The JKS format is a few fields and a
digest, and Java reads it without further modules:

| bytes | what |
|-------|------|
| 4, 4, 4 | magic ``FEEDFEED``, version 2, number of entries |
| an entry | int 2 (trusted certificate), alias, long time in ms, ``X.509``, int length, DER |
| 20 | SHA-1 over the password in UTF-16BE, ``Mighty Aphrodite``, and all of the above |

Source: the class comment of ``sun.security.provider.JavaKeyStore`` in OpenJDK (the format).
"""

from __future__ import annotations

import hashlib
import ssl
import struct
from pathlib import Path

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
