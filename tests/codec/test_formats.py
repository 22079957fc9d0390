"""Values of other formats than JSON: read as JSON where people look, kept as they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from decimal import Decimal
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib import metadata
from pathlib import Path
from typing import Any

import cbor2
import fastavro
import msgspec
import pyarrow as pa
import pytest
from confluent_kafka.schema_registry import Schema as TheirSchema
from confluent_kafka.schema_registry import SchemaReference, SchemaRegistryClient
from confluent_kafka.schema_registry.avro import AvroSerializer
from confluent_kafka.schema_registry.json_schema import JSONSerializer
from confluent_kafka.schema_registry.protobuf import ProtobufSerializer
from confluent_kafka.serialization import MessageField, SerializationContext

from lakelog import Lakelog
from lakelog.cli import main as cli
from lakelog.codec.formats import decoders, schema_registry
from lakelog.codec.formats.decoders import decoded
from lakelog.errors import InvalidConfigError, MissingExtraError
from lakelog.values.value_format import Schema, ValueFormat, schemas_text

AT = datetime(2026, 7, 1, 12, tzinfo=timezone.utc)
TRADE = {
    "type": "record",
    "name": "Trade",
    "fields": [
        {"name": "id", "type": "long"},
        {"name": "note", "type": ["null", "string"]},
        {"name": "at", "type": {"type": "long", "logicalType": "timestamp-millis"}},
        {
            "name": "price",
            "type": {"type": "bytes", "logicalType": "decimal", "precision": 9, "scale": 2},
        },
    ],
}
COLUMNS = "id bigint, note string, at timestamp, price decimal(9,2)"


def trade(number: int) -> dict[str, Any]:
    note = "gift" if number % 2 else None
    return {"id": number, "note": note, "at": AT, "price": Decimal("12.50")}


class Registry:
    """As much of a schema registry as its clients ask for; or a real one, where there is one."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.client = SchemaRegistryClient({"url": url})
        self.asked: list[str] = []
        self.is_away = False


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> Iterator[Registry]:
    """At LAKELOG_TEST_REGISTRY, where one runs; else a stand-in."""
    subjects: dict[str, list[int]] = {}
    schemas: list[dict[str, Any]] = []
    made: Registry

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            made.asked.append(self.path)
            parts = self.path.split("?")[0].strip("/").split("/")
            if made.is_away:
                self._answer(503, {"error_code": 50301, "message": "away"})
            elif parts == ["subjects"]:
                self._answer(200, sorted(subjects))
            elif parts[:2] == ["schemas", "ids"] and int(parts[2]) <= len(schemas):
                self._answer(200, schemas[int(parts[2]) - 1])
            elif parts[0] == "subjects" and parts[1] in subjects and len(parts) == 3:
                self._answer(200, [*range(1, len(subjects[parts[1]]) + 1)])
            elif parts[0] == "subjects" and parts[1] in subjects:
                number = subjects[parts[1]][int(parts[3]) - 1]
                told = {"subject": parts[1], "version": int(parts[3]), "id": number}
                self._answer(200, {**told, **schemas[number - 1]})
            else:
                self._answer(404, {"error_code": 40403, "message": "not found"})

        def do_POST(self) -> None:
            schema = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            schema = {name: schema[name] for name in schema if schema[name] is not None}
            subject = self.path.strip("/").split("/")[1]
            if schema not in schemas:
                schemas.append(schema)
            number = schemas.index(schema) + 1
            versions = subjects.setdefault(subject, [])
            if number not in versions:
                versions.append(number)
            version = versions.index(number) + 1
            self._answer(200, {"subject": subject, "version": version, "id": number, **schema})

        def _answer(self, status: int, body: Any) -> None:
            data = json.dumps(body).encode()
            self.send_response(status)
            self.send_header("Content-Type", "application/vnd.schemaregistry.v1+json")
            self.send_header("Content-Length", str(len(data)))
            self.end_headers()
            self.wfile.write(data)

        def log_message(self, *_: Any) -> None:
            pass

    given = os.environ.get("LAKELOG_TEST_REGISTRY")
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    made = Registry(given or f"http://127.0.0.1:{server.server_port}")
    monkeypatch.setenv(schema_registry.REGISTRY_VARIABLE, made.url)
    schema_registry._opened.cache_clear()
    decoders._decoder.cache_clear()
    yield made
    server.shutdown()
    server.server_close()


def context(topic: str, field: str = MessageField.VALUE) -> SerializationContext:
    return SerializationContext(topic, field)


@pytest.fixture
def trades(lake: Lakelog, registry: Registry) -> list[bytes]:
    """Values of a topic `trades`: four that Avro's serialiser wrote, and two that it did not."""
    settings = {"lakelog.value.format": "confluent", "lakelog.value.columns": COLUMNS}
    lake.topics.create("trades", 1, settings)
    serialize = AvroSerializer(registry.client, json.dumps(TRADE))
    values = [serialize(trade(number), context("trades")) for number in range(4)]
    values += [b"junk", b"\0\x7f\xff\xff\xff\x02"]
    with lake.producer() as producer:
        for value in values:
            producer.send("trades", value)
        producer.send("trades", None, key="gone")
    return values


def ids(table: pa.Table) -> list[int | None]:
    return table["id"].to_pylist()


def test_what_a_serialiser_wrote_is_read_wherever_values_are(
    lake: Lakelog, trades: list[bytes], capsys: Any
) -> None:
    log, asked = lake.log("trades"), 'select * from trades order by "offset"'
    for _ in ("hot", "cold"):
        read = log.read(0).to_table()
        assert ids(read) == [0, 1, 2, 3, None, None, None]
        assert read["price"].to_pylist()[:4] == [Decimal("12.50")] * 4
        assert read["at"].to_pylist()[:4] == [AT] * 4
        assert read["value_error"][4].as_py() == "not in the wire format of a schema registry"
        assert read["value_error"][5].as_py().startswith("schema 2147483647 is not known")
        assert read["value_error"][6].as_py() is None
        assert log.read(0).to_arrow()["value"].to_pylist() == [*trades, None]
        assert ids(log.search('value.note = "gift"').to_table()) == [1, 3]
        assert ids(log.read(0).matching("value.id > 2").to_table()) == [3]
        rows = lake.sql(asked).read_all()
        assert ids(rows) == ids(read)
        assert json.loads(rows["value"][1].as_py())["note"] == "gift"
        assert rows["value_bytes"].to_pylist() == [*trades, None]
        lake.archive("trades")


def test_the_table_has_the_columns(lake: Lakelog, trades: list[bytes]) -> None:
    (report,) = lake.archive("trades")
    assert (report.records, report.unparsed) == (7, 2)
    lake.cleanup("trades", steps=["optimize"])
    found = lake.sql("select id, value_error from trades where id >= 2").read_all()
    assert ids(found) == [2, 3]


def test_what_is_archived_is_read_without_the_registry(
    lake: Lakelog, trades: list[bytes], registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    lake.archive("trades")
    kept = lake.topics.get("trades").config["lakelog.schemas"]
    assert [json.loads(one.schema)["name"] for one in kept.values()] == ["Trade"]
    monkeypatch.delenv(schema_registry.REGISTRY_VARIABLE)
    assert ids(lake.log("trades").read(0, 0, 4).to_table()) == [0, 1, 2, 3]


def test_a_registry_that_is_away_stops_nothing(
    lake: Lakelog, trades: list[bytes], registry: Registry, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.environ.get("LAKELOG_TEST_REGISTRY"):
        monkeypatch.setenv(schema_registry.REGISTRY_VARIABLE, "http://127.0.0.1:1")
    registry.is_away = True
    (report,) = lake.archive("trades")
    assert (report.records, report.unparsed) == (7, 6)
    read = lake.log("trades").read(0).to_table("text")
    assert read.num_rows == 7
    assert len(registry.asked) <= 1 + 1  # it is not asked again at once
    registry.is_away = False
    schema_registry._opened.cache_clear()
    decoders._decoder.cache_clear()
    monkeypatch.setenv(schema_registry.REGISTRY_VARIABLE, registry.url)
    assert ids(lake.log("trades").read(0, 0, 4).to_table()) == [0, 1, 2, 3]


PROTO = """\
syntax = "proto3";
package shop;
import "google/protobuf/timestamp.proto";
enum Kind { PLAIN = 0; GIFT = 1; }
message Line { string sku = 1; int32 count = 2; }
message Order {
  int64 id = 1;
  repeated Line lines = 2;
  map<string, int64> stock = 3;
  google.protobuf.Timestamp at = 4;
  Kind kind = 5;
  optional uint64 most = 6;
  message Inner { string text = 1; }
}
"""


@pytest.fixture(scope="module")
def messages(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The classes that Protobuf's compiler makes."""
    folder = tmp_path_factory.mktemp("proto")
    (folder / "made_order.proto").write_text(PROTO)
    command = [sys.executable, "-m", "grpc_tools.protoc", "-I.", "--python_out=."]
    subprocess.run([*command, "made_order.proto"], cwd=folder, check=True)
    sys.path.insert(0, str(folder))
    import made_order_pb2  # type: ignore[import-not-found]

    return made_order_pb2


def test_protobuf_by_its_descriptor(lake: Lakelog, registry: Registry, messages: Any) -> None:
    lake.topics.create("orders", 1, {"lakelog.value.format": "confluent"})
    order = messages.Order(id=2**60, kind=messages.GIFT, stock={"a": 5}, most=2**63)
    order.lines.add(sku="s", count=2)
    order.at.FromJsonString("2026-07-01T12:00:00Z")
    with lake.producer() as producer:
        for value in (order, messages.Order(), messages.Order.Inner(text="t")):
            serialize = ProtobufSerializer(
                type(value), registry.client, {"use.deprecated.format": False}
            )
            producer.send("orders", serialize(value, context("orders")))
    told = [
        json.loads(one) for one in lake.log("orders").read(0).to_table("text")["value"].to_pylist()
    ]
    assert told == [
        {
            "id": 2**60,
            "lines": [{"sku": "s", "count": 2}],
            "stock": {"a": 5},
            "at": "2026-07-01T12:00:00Z",
            "kind": "GIFT",
            "most": 2**63,
        },
        {"id": 0, "lines": [], "stock": {}, "kind": "PLAIN"},
        {"text": "t"},
    ]


def test_protobuf_by_its_text_and_what_it_refers_to(registry: Registry, messages: Any) -> None:
    shared = 'syntax = "proto3"; package shared; message Money { int64 cents = 1; }'
    text = (
        'syntax = "proto3"; import "shared/money.proto";'
        "message Price { shared.Money is = 1; string of = 2; }"
    )
    schemas = {7: Schema(text, "PROTOBUF", {"shared/money.proto": shared})}
    form = ValueFormat("confluent", schemas_text(schemas))
    value = b"\0\0\0\0\x07\0" + b"\x0a\x02\x08\x05" + b"\x12\x01a"
    outside = {7: Schema(text, "PROTOBUF", {"../money.proto": shared})}
    found = decoded(pa.array([value, b"\0\0\0\0\x07\0\xff", b"\0\0\0\0\x07\x02\x0a"]), form)
    assert json.loads(found.values[0].as_py()) == {"is": {"cents": 5}, "of": "a"}
    assert found.errors[1].startswith("no such message of Protobuf")
    assert found.errors[2] == "its schema has no message [5]"
    refused = decoded(pa.array([value]), ValueFormat("confluent", schemas_text(outside)))
    assert "no name of a file" in refused.errors[0]
    broken = {7: Schema("message {", "PROTOBUF")}
    refused = decoded(pa.array([value]), ValueFormat("confluent", schemas_text(broken)))
    assert refused.errors[0].startswith("its schema cannot be compiled: ")


def test_json_by_a_schema_and_avro_that_refers_to_another(
    lake: Lakelog, registry: Registry
) -> None:
    lake.topics.create("mixed", 1, {"lakelog.value.format": "confluent"})
    order = {"title": "Order", "type": "object", "properties": {"id": {"type": "integer"}}}
    by_json = JSONSerializer(json.dumps(order), registry.client)
    money = {"type": "record", "name": "Money", "fields": [{"name": "cents", "type": "long"}]}
    registry.client.register_schema("money", TheirSchema(json.dumps(money), "AVRO"))
    price = {"type": "record", "name": "Price", "fields": [{"name": "is", "type": "Money"}]}
    refers = TheirSchema(json.dumps(price), "AVRO", [SchemaReference("Money", "money", 1)])
    by_avro = AvroSerializer(registry.client, refers)
    with lake.producer() as producer:
        producer.send("mixed", by_json({"id": 1}, context("mixed")))
        producer.send(
            "mixed", by_avro({"is": {"cents": 5}}, SerializationContext("prices", "value"))
        )
    read = lake.log("mixed").read(0).to_table("text")["value"].to_pylist()
    assert [json.loads(one) for one in read] == [{"id": 1}, {"is": {"cents": 5}}]


def test_single_objects_of_avro() -> None:
    parsed = fastavro.parse_schema(TRADE)
    print_ = fastavro.schema.fingerprint(
        fastavro.schema.to_parsing_canonical_form(TRADE), "CRC-64-AVRO"
    )
    from io import BytesIO

    body = BytesIO()
    fastavro.schemaless_writer(body, parsed, trade(3))
    value = b"\xc3\x01" + bytes.fromhex(print_) + body.getvalue()
    form = ValueFormat("avro", schemas_text({1: Schema(json.dumps(TRADE))}))
    found = decoded(pa.array([value, b"x", b"\xc3\x01" + b"\0" * 9, value + b"!"]), form)
    assert json.loads(found.values[0].as_py())["id"] == 3
    assert set(found.errors) == {1, 2, 3}
    assert found.values[1].as_py() == b"x"


@pytest.mark.parametrize(
    ("name", "encode"), [("messagepack", msgspec.msgpack.encode), ("cbor", cbor2.dumps)]
)
def test_formats_without_schemas(name: str, encode: Callable[[Any], bytes]) -> None:
    given = {"n": 2**63, "x": [1.5, None, True], "b": b"\1", "at": AT}
    found = decoded(pa.array([encode(given), None, b"\xc1\xff\xff"]), ValueFormat(name))
    assert json.loads(found.values[0].as_py()) == {
        **given,
        "b": "AQ==",
        "at": "2026-07-01T12:00:00Z",
    }
    assert found.values[1].as_py() is None
    assert [*found.errors] == [2]


class Reversed:
    name = "reversed"

    @staticmethod
    def load() -> Callable[[bytes], Any]:
        return lambda value: {"text": value[::-1].decode()}


def test_a_decoder_of_ones_own(lake: Lakelog, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(InvalidConfigError, match=r"reversed is none of json, .* lakelog\.decoders"):
        lake.topics.create("own", 1, {"lakelog.value.format": "reversed"})
    with pytest.raises(MissingExtraError, match=r"lakelog\.decoders"):
        decoded(pa.array([b"x"]), ValueFormat("reversed"))
    real = metadata.entry_points

    def found(**given: Any) -> Any:
        is_ours = given == {"group": "lakelog.decoders", "name": "reversed"}
        return [Reversed] if is_ours else real(**given)

    monkeypatch.setattr(decoders, "entry_points", found)
    lake.topics.create("own", 1, {"lakelog.value.format": "reversed"})
    with lake.producer() as producer:
        producer.send("own", b"cba")
    assert lake.log("own").read(0).to_table("text")["value"].to_pylist() == ['{"text":"abc"}']


def test_commands_show_it(
    lake: Lakelog, registry: Registry, redis_url: str, tmp_path: Path, capsys: Any
) -> None:
    settings = {"lakelog.value.format": "messagepack", "lakelog.key.format": "messagepack"}
    lake.topics.create("m", 1, settings)
    encode = msgspec.msgpack.encode
    with lake.producer() as producer:
        producer.send("m", encode({"n": 1}), key=encode(["k", 1]))
        producer.send("m", encode({"n": 2}), key=encode("plain"))
    place = ["--redis", redis_url, "--cold", str(tmp_path / "unused"), "--engine", "inline"]

    def run(*arguments: str) -> str:
        assert cli.main([*place, *arguments]) == 0
        shown: str = capsys.readouterr().out
        return shown

    rows = [json.loads(line) for line in run("consume", "m", "--output", "json").splitlines()]
    assert [(row["key"], row["value"]) for row in rows] == [
        ('["k",1]', '{"n":1}'),
        ('"plain"', '{"n":2}'),
    ]
    assert '{"n":2}' in run("consume", "m", "--where", "value.n = 2")
    assert '{"n":1}' not in run("consume", "m", "--where", "value.n = 2")
    stored = run("consume", "m", "--stored-values", "--output", "json").splitlines()
    assert "value_base64" in json.loads(stored[0]) or json.loads(stored[0])["value"] != '{"n":1}'
    assert '"n":1' in run("grep", "n", "m")
    assert "n" in run("topics", "infer", "m")
    assert "n" in run("consume", "m", "--columns").splitlines()[0].split()
    columns = lake.log("m").read(0).to_table()
    assert (columns["key"].to_pylist(), columns["n"].to_pylist()) == (
        ['["k",1]', '"plain"'],
        [1, 2],
    )
