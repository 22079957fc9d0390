"""A secret that was given once comes out nowhere: in no repr, error, log, output, table or key."""

from __future__ import annotations

import contextlib
import logging
import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from uuid import uuid4

import pytest
import redis
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

from lakelog import Lakelog, TopicPartition, tracing
from lakelog.cli.main import main
from lakelog.codec.encryption.of_topic import opening
from lakelog.errors import LakelogError
from lakelog.values.config import ENCRYPTION_KEY
from tests.support.object_store import S3Server, s3_options
from tests.support.servers import RedisServer, free_port

PASSWORD, KEY = "correct-horse-battery", "staple/Secret+Key40"
#: What wraps the keys that values are encrypted with.
ENCRYPTION = "5ea1ed" * 10 + "ab12"
SECRETS = (PASSWORD, KEY, ENCRYPTION)


def check(what: str, text: str | bytes) -> None:
    for secret in SECRETS:
        found = secret.encode() in text if isinstance(text, bytes) else secret in text
        assert not found, f"{what} has a secret"
    if isinstance(text, bytes):
        assert bytes.fromhex(ENCRYPTION) not in text, f"{what} has a key"


def reachable(start: object) -> Iterator[object]:
    """The objects of lakelog's classes that one holds, and those hold, and so on."""
    seen: set[int] = set()
    todo = [start]
    while todo:
        one = todo.pop()
        if id(one) in seen:
            continue
        seen.add(id(one))
        if type(one).__module__.startswith("lakelog"):
            yield one
            slots = [name for cls in type(one).__mro__ for name in getattr(cls, "__slots__", ())]
            todo += [getattr(one, name) for name in slots if hasattr(one, name)]
            todo += vars(one).values() if hasattr(one, "__dict__") else []
        elif isinstance(one, (list, tuple, set, frozenset)):
            todo += one
        elif isinstance(one, dict):
            todo += one.values()


@pytest.fixture
def server(make_redis: Callable[..., RedisServer]) -> RedisServer:
    return make_redis(requirepass=PASSWORD)


@pytest.fixture
def root(s3_server: S3Server) -> tuple[str, dict[str, str]]:
    """A cold root in an object store, and what opens it."""
    options = {**s3_options(s3_server.url), "AWS_SECRET_ACCESS_KEY": KEY}
    return f"s3://lakelog/{uuid4().hex}", options


def test_what_objects_errors_and_logs_say(
    server: RedisServer,
    root: tuple[str, dict[str, str]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("LAKE_KEY", ENCRYPTION)
    caplog.set_level(logging.DEBUG)
    cold, options = root
    spans, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(spans))
    tracing.start(provider)
    with Lakelog.connect(server.url, cold, engine="inline", storage_options=options) as lake:
        lake.topics.create("orders", 1, {"local.retention.ms": 0})
        lake.topics.create("sealed", 1, {ENCRYPTION_KEY: "env:LAKE_KEY"})
        with lake.producer() as producer:
            producer.send("orders", b"x", key="k").result()
            producer.send("sealed", b"x", key="k")
        assert lake.log("sealed").read(0).to_arrow()["value"].to_pylist() == [b"x"]
        lake.archive()
        consumer = lake.consumer("orders", group_id="nightly", auto_offset_reset="earliest")
        while not consumer.poll(500):
            pass
        objects = [lake, lake.archived, lake.log("orders"), lake.log("orders").table]
        objects += [producer, consumer, lake.status(), lake.check(), lake.metrics()]
        objects += [lake.log("sealed"), opening(lake.topics.rotate_key("sealed"))]
        for one in objects:
            for held in reachable(one):
                check(f"{type(held).__name__}'s repr", f"{held!r} {held!s}")
        for name, call in failing(lake, server, cold, options).items():
            error = refusal(call)
            assert error is not None, name
            check(name, "".join(traceback.format_exception(error)) + repr(error.fields))
        consumer.close()
    tracing.stop()
    for span in spans.get_finished_spans():
        check(f"span {span.name}", span.to_json())
    assert {span.name for span in spans.get_finished_spans()} >= {
        *(f"{name} orders" for name in ("send", "append", "poll", "archive", "copy", "commit"))
    }
    check("a log", caplog.text)
    assert caplog.text  # libraries say something, too


def refusal(call: Callable[[], Any]) -> LakelogError | None:
    try:
        call()
    except LakelogError as error:
        return error
    return None


def failing(
    lake: Lakelog, server: RedisServer, cold: str, options: dict[str, str]
) -> dict[str, Callable[[], Any]]:
    wrong = server.url.replace(PASSWORD, f"{PASSWORD}x")
    away = server.url.replace(str(server.port), str(free_port()))
    return {
        "a wrong password": lambda: Lakelog.connect(wrong),
        "no server": lambda: Lakelog.connect(away),
        "a wrong parameter": lambda: Lakelog.connect(f"{server.url}?socket_timeout={KEY}"),
        "a wrong scheme": lambda: Lakelog.connect(server.url.replace("redis://", "http://")),
        "an unknown option": lambda: Lakelog.connect(
            server.url, cold, storage_options={**options, "AWS_SECRET": KEY}
        ),
        "half a key": lambda: (
            Lakelog.connect(server.url, cold, storage_options={"AWS_SECRET_ACCESS_KEY": KEY})
            .log("orders")
            .read(0)
            .to_arrow()
        ),
        "a secret for a reference": lambda: Lakelog.connect(server.url, password_ref=PASSWORD),
        "a plan": lambda: lake.place.options(),
        "a key for its place": lambda: lake.topics.alter("sealed", {ENCRYPTION_KEY: ENCRYPTION}),
        "a key for another place": lambda: lake.topics.rotate_key("sealed", wrap_with=ENCRYPTION),
        "a key for a default's place": lambda: lake.topics.set_defaults(
            {f"lakelog.log.{ENCRYPTION_KEY.removeprefix('lakelog.')}": ENCRYPTION}
        ),
        "no topic": lambda: lake.log("nothing"),
        "no partition": lambda: lake.hot.offsets([TopicPartition("orders", 7)]),
    }


def test_what_commands_print_and_leave(
    server: RedisServer,
    root: tuple[str, dict[str, str]],
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    tmp_path: Path,
    s3_server: S3Server,
) -> None:
    """The password in the URL that was typed, the key in the environment."""
    folder = tmp_path / "cold"
    where = ["--redis", server.url, "--cold", str(folder), "--engine", "inline"]
    monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", KEY)
    monkeypatch.setenv("LAKE_KEY", ENCRYPTION)
    commands = [
        ["topics", "create", "orders", "-p", "1"],
        ["topics", "create", "sealed", "--config", f"{ENCRYPTION_KEY}=env:LAKE_KEY"],
        ["topics", "create", "wrong", "--config", f"{ENCRYPTION_KEY}={ENCRYPTION}"],
        ["topics", "alter", "sealed", f"--config={ENCRYPTION_KEY}={ENCRYPTION}"],
        ["topics", "rotate-key", "sealed"],
        ["topics", "rotate-key", "sealed", "--wrap-with", ENCRYPTION],
        ["topics", "describe", "sealed", "--output", "json"],
        ["archive"],
        ["status"],
        ["status", "--output", "json"],
        ["metrics"],
        ["check"],
        ["segments", "list", "orders", "--verify"],
        ["topics", "describe", "orders"],
        ["consume", "orders"],
        ["groups", "list"],
        ["cleanup", "run"],
        ["erase", "orders", "--key", "nobody"],
        ["doctor"],
        ["acl", "admin"],
        ["history"],
        ["status", "nothing"],
        ["--verbose", "consume", "nothing"],
        ["--storage-option", f"AWS_SECRET_ACCESS_KEY={KEY}", "status"],
        ["--password-ref", PASSWORD, "status"],
        ["export", "orders", "--to", str(tmp_path / "orders.tar")],
    ]
    for command in commands:
        with contextlib.suppress(SystemExit, LakelogError):  # --verbose raises
            main([*where, *command])
        said = capfd.readouterr()
        check(f"lakelog {command}", said.out + said.err)
    s3, options = root
    for name in options.keys() - {"AWS_SECRET_ACCESS_KEY"}:
        monkeypatch.setenv(name, options[name])
    for command in (["archive"], ["status"], ["doctor"], ["history"]):
        main(["--redis", server.url, "--cold", s3, "--keyspace", "other", *command])
        said = capfd.readouterr()
        check(f"lakelog {command} in S3", said.out + said.err)
    assert main([*where, "history"]) == 0
    assert "archive" in capfd.readouterr().out
    for file in [*folder.rglob("*"), tmp_path / "orders.tar"]:
        if file.is_file():
            check(str(file), file.read_bytes())
    with redis.Redis.from_url(server.url) as client:
        for key in client.scan_iter():
            check(repr(key), client.dump(key) or b"")
