"""Where a cold root may lie, and what is said where it may not."""

from __future__ import annotations

import pickle
from pathlib import Path
from uuid import uuid4

import pytest
from made_up import MadeUpRows, archive

from lakelog import Lakelog
from lakelog.cli.main import main
from lakelog.cold.by_path.path_table import PathTable
from lakelog.cold.store.storage import Storage, check_deltalake
from lakelog.cold.store_errors import one_line
from lakelog.engines.engine import InlineEngine
from lakelog.errors import ColdTierError, InvalidArgumentError
from lakelog.jobs import connect_cold, parameters
from lakelog.operate.acl.acl import acl
from lakelog.spark.options import log_place


def test_paths_are_resolved_at_once(tmp_path, monkeypatch, topic):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert Storage("cold").root == str(tmp_path / "cold")
    assert Storage("~/cold").root == str(tmp_path / "home" / "cold")
    assert Storage(f"file://{tmp_path}/a%20b").root == str(tmp_path / "a b")
    assert Storage(str(tmp_path)).table_path(topic) == f"{tmp_path}/orders/{topic.topic_id}"
    assert Storage("s3://bucket/logs/").table_path(topic) == (
        f"s3://bucket/logs/orders/{topic.topic_id}"
    )


@pytest.mark.parametrize("root", ["s3://b/p", "gs://b/p", "abfss://c@a.dfs.core.windows.net/p"])
def test_object_stores_are_recognised_and_travel(root):
    storage = pickle.loads(pickle.dumps(Storage(root)))
    assert storage.root == root
    assert not storage.is_local


@pytest.mark.parametrize(
    ("root", "error", "why"),
    [
        ("/Volumes/main/logs/v", ColdTierError, "no Delta commit"),
        ("file:///Volumes/main/logs/v", ColdTierError, "no Delta commit"),
        ("/dbfs/logs", ColdTierError, "no Delta commit"),
        ("hdfs://name/logs", InvalidArgumentError, "hdfs:// is not one of"),
        ("/data/50%25", ColdTierError, "'%'"),
        ("", InvalidArgumentError, "give a folder"),
    ],
)
def test_other_places_are_refused_with_the_reason(root, error, why):
    with pytest.raises(error, match=why):
        Storage(root)


MISTYPED = {
    "s3:/bkt/logs": "s3://bkt/logs as text",
    "s3://bkt//logs": "s3://bkt/logs",
    "s3:///bkt/logs": "s3://bkt/logs",
    "s3://bkt/./logs": "s3://bkt/logs",
    "s3://bkt/a/../logs": "s3://bkt/a/logs",
    "s3:bkt/logs": "s3://bkt/logs",
    "s3//bkt/logs": "s3://bkt/logs",
    "S3://bkt/logs": "s3://bkt/logs",
    "s3a://bkt/logs": "s3://bkt/logs",
    "s3n:bkt/logs": "s3://bkt/logs",
    "s3://": "s3://BUCKET/FOLDER",
    "s3:/": "s3://BUCKET/FOLDER",
    "arn:aws:s3:::bkt/logs": "s3://BUCKET/FOLDER",
    "gs:/bkt/logs": "gs://bkt/logs",
    "gs:bkt": "gs://bkt",
    "gcs://bkt/logs": "gs://bkt/logs",
    "abfs://c@a.dfs.core.windows.net/logs": "abfss://c@a.dfs.core.windows.net/logs",
    "abfss:/c@a.dfs.core.windows.net/logs": "abfss://c@a.dfs.core.windows.net/logs as text",
    "abfss://c@a.dfs.core.windows.net//logs": "abfss://c@a.dfs.core.windows.net/logs",
    "abfss:container/logs": "abfss://CONTAINER@ACCOUNT",
    "az://container/logs": "abfss://CONTAINER@ACCOUNT",
    "wasbs://c@a.blob.core.windows.net/logs": "abfss://CONTAINER@ACCOUNT",
    "dbfs:/logs": "external location",
    "dbfs:logs": "external location",
    "hdfs:logs": "hdfs:// is not one of",
    "https://bkt.s3.amazonaws.com/logs": "https:// is not one of",
    "redis://host:6379": "redis_url",
    "file:rel/logs": "file:///FOLDER",
    "file://rel/logs": "file:///FOLDER",
    "file://~/logs": "file:///FOLDER",
    "file://host/srv/logs": "file:///FOLDER",
    "file:///srv/logs#1": "%23",
    "file:": "file:///FOLDER",
    " /srv/logs": "'/srv/logs'",
    "/srv/logs ": "'/srv/logs'",
    "/srv/logs\n": "'/srv/logs'",
    " s3://bkt/logs": "'s3://bkt/logs'",
    "\ufeffs3://bkt/logs": "'s3://bkt/logs'",
    "'s3://bkt/logs'": "'s3://bkt/logs'",
    "$HOME/logs": "variable",
    "${BUCKET}/logs": "variable",
    "C:\\logs": "Linux",
    "C:/logs": "Linux",
}


@pytest.mark.parametrize("root", MISTYPED)
def test_a_mistyped_root_is_refused_with_what_was_meant_and_makes_no_folder(
    root, tmp_path, monkeypatch
):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InvalidArgumentError) as refused:
        Storage(root)
    assert MISTYPED[root] in refused.value.message
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "root",
    ["s3:/KEY:SE/CRET@bkt/x", "S3://KEY:SECRET@bkt/x", "gs:/b?key=SECRET", "s3:KEY:SECRET@b"],
)
def test_a_mistyped_root_with_keys_in_it_is_not_repeated(root):
    with pytest.raises(InvalidArgumentError) as refused:
        Storage(root)
    assert "CRET" not in f"{refused.value} {refused.value.value}"


@pytest.mark.parametrize(
    ("root", "path"),
    [
        ("file:{}/cold", "{}/cold"),
        ("file://{}/cold", "{}/cold"),
        ("file://localhost{}/cold", "{}/cold"),
        ("FILE://{}/a%20b%23c", "{}/a b#c"),
        ("log:orders", "{}/log:orders"),
        ("./s3:logs", "{}/s3:logs"),
        ("{}/s3:/logs", "{}/s3:/logs"),
        ("s3", "{}/s3"),
        ("rock'n'", "{}/rock'n'"),
    ],
)
def test_a_folder_is_taken_by_each_of_its_names(root, path, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert Storage(root.format(tmp_path)).root == path.format(tmp_path)


@pytest.mark.parametrize("root", [Path("s3://bkt/logs"), "s3:bkt/logs", "file:rel/logs"])
def test_wherever_a_root_or_a_directory_is_taken_a_mistyped_one_is_refused(
    root, redis_url, tmp_path, monkeypatch, capsys
):
    monkeypatch.chdir(tmp_path)
    with Lakelog.connect(redis_url, keyspace=f"roots-{uuid4().hex}", engine="inline") as log:
        asked = [
            lambda: Lakelog.connect(redis_url, root),
            lambda: Lakelog.connect(redis_url, "main.logs", location=root),
            lambda: Lakelog.connect(None, root),
            lambda: Lakelog.embedded(root),
            lambda: log_place({"redis": redis_url, "cold": str(root)}),
            lambda: log.export(root),
            lambda: log.import_topics(root),
            lambda: log.import_topics(f"{root}.tar"),
            lambda: acl("archiver", cold=str(root)),
            lambda: connect_cold(parameters(cold=str(root), location="", directory="")),
            lambda: connect_cold(parameters(cold="", location="", directory=str(root))),
        ]
        for ask in asked:
            with pytest.raises(InvalidArgumentError, match="is not a"):
                ask()
    for command in (
        ["--cold", str(root), "status"],
        ["--redis", redis_url, "--cold", str(root), "restore"],
        ["--cold", str(root), "register", "--in", "main.logs"],
        ["--dir", str(root), "topics", "create", "orders"],
        ["--dir", str(root), "demo", "--rows", "10"],
        ["--redis", redis_url, "--cold", str(root), "doctor"],
    ):
        assert main(command) != 0
        told = capsys.readouterr()
        assert "is not a" in told.err + told.out
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", ["with blank", "ünïcode", "a#b?c&d+e", "[x]", "it's"])
def test_any_other_name_will_do(tmp_path, topic, name):
    table = PathTable(topic, Storage(str(tmp_path / name)), InlineEngine(), MadeUpRows())
    snapshot = table.apply(archive(topic, table.snapshot(), 10), table.snapshot()).snapshot
    assert sum(b.num_rows for b in table.read(list(snapshot.files), 0, 10)) == 10
    assert list(tmp_path.iterdir()) == [tmp_path / name]


def test_a_root_that_cannot_be_written_is_named(tmp_path, topic):
    (tmp_path / "file").write_text("")
    storage = Storage(str(tmp_path / "file" / "cold"))
    table = PathTable(topic, storage, InlineEngine(), MadeUpRows())
    for attempt in (
        storage.check_writable,
        lambda: table.apply(archive(topic, table.snapshot(), 10), table.snapshot()),
    ):
        with pytest.raises(ColdTierError, match=r"file/cold.*Check that"):
            attempt()


def test_what_a_library_says_stands_in_a_sentence():
    said = (
        "Generic error\n    \x1b[31m↳\x1b[0m Unable to open\n   \x1b[31m↳\x1b[0m (os error 30).\n"
    )
    assert one_line(OSError(said)) == "Generic error ↳ Unable to open ↳ (os error 30)"


def test_checking_a_root_leaves_nothing(tmp_path):
    Storage(str(tmp_path / "cold")).check_writable()
    assert list((tmp_path / "cold").iterdir()) == []


@pytest.mark.parametrize("version", ["1.6.5", "1.5.9", "0.25.5"])
def test_an_older_deltalake_is_refused(version):
    with pytest.raises(ColdTierError, match=r"pip install 'deltalake>=1\.6\.6'"):
        check_deltalake(version)


@pytest.mark.parametrize("version", ["1.6.6", "1.10.0", "2.0.0rc1"])
def test_a_newer_deltalake_will_do(version):
    check_deltalake(version)


def test_everything_written_is_synced_before_it_is_spoken_of(make_table, topic, root, monkeypatch):
    """Files before the commit that names them, the commit and its folder before `apply` returns."""
    synced: list[str] = []
    sync = Storage.sync

    def noting(self: Storage, *paths: str) -> None:
        sync(self, *paths)
        synced.extend(str(Path(path).relative_to(root.parent)) for path in paths)

    monkeypatch.setattr(Storage, "sync", noting)
    table = make_table()
    applied = table.apply(archive(topic, table.snapshot(), 10), table.snapshot())

    folder = Path(table.path).relative_to(root.parent)
    file = folder / applied.files[0].path
    commit = folder / "_delta_log" / f"{applied.snapshot.version:020}.json"
    for folder_of_one in (*file.parents[:-1], file, commit, commit.parent):
        assert str(folder_of_one) in synced or folder_of_one == Path()
    assert synced.index(str(file)) < synced.index(str(commit))

    synced.clear()
    make_table().snapshot()  # another process that would trim by it
    assert str(commit) in synced
