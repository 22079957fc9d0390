"""A real Unity Catalog server for tests, which a folder's own programs start and end."""

from __future__ import annotations

import json
import os
import subprocess
import urllib.request
from pathlib import Path
from typing import Any

from tests.support.object_store import FaultyFront, S3Server
from tests.support.servers import START_TIMEOUT_S, two_free_ports

_API = "/api/2.1/unity-catalog"

#: The catalog that needs no server.
SPARKS_OWN = "spark_catalog"


class UnityCatalogServer:
    """A server with an empty catalog `CATALOG`; Spark reaches it through `front`, which can fail.

    With an object store it has `CATALOG_ON_S3` too, whose tables lie there. Its STS gives keys for
    an hour (which the store does not look at). Whoever opens it says where it is, by
    AWS_ENDPOINT_URL in the environment, of Spark's workers too.

    Args:
        folder: has ``up PORT``, which starts a server on a loopback port (it may use the next one
            too) and ends once that answers; ``down PORT``, which ends it; and somewhere below
            Spark's connector, ``unitycatalog-spark*.jar``.
        s3: has the bucket `BUCKET`.
    """

    CATALOG = "unity"
    CATALOG_ON_S3 = "unity_s3"
    BUCKET = "unity"

    def __init__(self, folder: Path, s3: S3Server | None = None) -> None:
        self._folder = folder
        self._s3 = s3
        self.port = two_free_ports()
        self.front = FaultyFront(self.port)

    def start(self) -> UnityCatalogServer:
        done = subprocess.run(
            [self._folder / "up", str(self.port)],
            env={**os.environ, **self._environment()},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,  # the server may keep it open
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{self._folder}/up {self.port} ended with {done.returncode}")
        self.front.start()
        self.ask("POST", "/catalogs", {"name": self.CATALOG})
        if self._s3 is not None:
            root = f"s3://{self.BUCKET}/tables"
            self.ask("POST", "/catalogs", {"name": self.CATALOG_ON_S3, "storage_root": root})
        return self

    def stop(self) -> None:
        self.front.stop()
        subprocess.run([self._folder / "down", str(self.port)], check=True)

    def ask(self, method: str, path: str, body: Any = None) -> Any:
        """The answer to a request of the REST API, past the front."""
        request = urllib.request.Request(
            f"http://127.0.0.1:{self.port}{_API}{path}",
            None if body is None else json.dumps(body).encode(),
            {"Content-Type": "application/json"},
            method=method,
        )
        with urllib.request.urlopen(request, timeout=START_TIMEOUT_S) as answer:
            return json.load(answer)

    def spark_conf(self) -> dict[str, str]:
        """Settings of a session that has the catalog."""
        jar = next(iter(sorted(self._folder.rglob("unitycatalog-spark*.jar"))), None)
        if jar is None:
            raise RuntimeError(f"no unitycatalog-spark*.jar lies below {self._folder}")
        conf = {"spark.jars": str(jar)}
        for name in (self.CATALOG, self.CATALOG_ON_S3):
            catalog = f"spark.sql.catalog.{name}"
            conf |= {
                catalog: "io.unitycatalog.spark.UCSingleCatalog",
                f"{catalog}.uri": self.front.url,
                f"{catalog}.token": "any",
                f"{catalog}.warehouse": name,
            }
        if self._s3 is not None:
            conf |= {
                "spark.hadoop.fs.s3a.endpoint": self._s3.url,
                "spark.hadoop.fs.s3a.endpoint.region": "us-east-1",
                "spark.hadoop.fs.s3a.path.style.access": "true",
            }
        return conf

    def _environment(self) -> dict[str, str]:
        """What `up` is told of the object store."""
        if self._s3 is None:
            return {}
        return {
            "UC_S3_BUCKET": f"s3://{self.BUCKET}",
            "UC_S3_ROLE": "arn:aws:iam::123456789012:role/lakelog",
            "UC_S3_TOKEN": "",  # of its own keys: none, so it asks the STS for others
            "AWS_ENDPOINT_URL_STS": self._s3.url,
        }
