"""What an expression means, against the same said in plain Python; and that its text says it."""

from __future__ import annotations

import json
from datetime import datetime, timezone
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lakelog.base.json_text import reached
from lakelog.errors import InvalidArgumentError
from lakelog.read.where import Bounds, parse
from lakelog.read.where.expression import (
    All,
    Always,
    Bytes,
    Compare,
    Contains,
    Either,
    Exists,
    Header,
    Like,
    Member,
    Not,
    Number,
    OneOf,
    Text,
    Time,
    compares,
    matching,
)
from lakelog.read.where.grammar import MAX_DEPTH, write
from lakelog.values.record import RECORDS, Record, to_records
from lakelog.values.topic_partition import TopicPartition

PARTITION = 1
TP = TopicPartition("t", PARTITION)
NOW = datetime(2013, 7, 4, 12, tzinfo=timezone.utc)
NOON_MS = 1_372_939_200_000

# -- records -----------------------------------------------------------------------------------

large = ["18446744073709551615", "18446744073709551614", "9007199254740993"]
texts = st.sampled_from(["", "a", "ab", "b", "ü", 'q"', "7", "-1.5", "x\\y", "\n", *large])
small = texts.map(str.encode) | st.binary(max_size=2)
names = st.sampled_from(["a", "b", "a=b", "ü", 'q"'])
documents = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 8) | st.sampled_from([0.5, -1.5]) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3),
    max_leaves=8,
)
values = st.one_of(
    st.none(),
    small,
    st.builds(lambda found, ascii_: json.dumps(found, ensure_ascii=ascii_).encode(),
              documents, st.booleans()),
)  # fmt: skip
headers = st.lists(st.tuples(names, st.none() | small), max_size=3)
rows = st.lists(st.tuples(st.integers(-1, 9), st.none() | small, values, headers), max_size=10)


def batch(found: list[Any]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pylist(
        [
            {
                "offset": offset,
                "timestamp": time_ms * 1000,
                "timestampType": 0,
                "key": key,
                "value": value,
                "headers": [{"key": name, "value": data} for name, data in pairs],
            }
            for offset, (time_ms, key, value, pairs) in enumerate(found)
        ],
        RECORDS,
    )


# -- expressions -------------------------------------------------------------------------------

steps = st.lists(names | st.integers(-2, 2) | st.none(), min_size=1, max_size=2).map(tuple)
signs = st.sampled_from(["=", "!=", "<", "<=", ">", ">="])
numbers = st.integers(-3, 9) | st.sampled_from([0.5, -1.5, 10**20, 2**53, 2**64 - 1, -(2**63)])
of_bytes = st.builds(Bytes, st.sampled_from(["key", "value"])) | st.builds(Header, names)
of_number = st.builds(Number, st.sampled_from(["offset", "partition", "size"]))
of_member = st.builds(Member, steps)
byte_literals = texts | st.binary(max_size=2).filter(lambda data: not _is_readable(data)) | numbers
member_literals = texts | numbers | st.booleans() | st.none()


def _is_readable(data: bytes) -> bool:
    try:
        return data.decode().isprintable()
    except UnicodeDecodeError:
        return False


def one_of(fields: Any, literals: Any) -> Any:
    return st.builds(OneOf, fields, st.lists(literals, min_size=1, max_size=3).map(tuple))


conditions = st.one_of(
    st.builds(Text, small),
    st.builds(Compare, of_bytes, signs, byte_literals),
    st.builds(Compare, of_number, signs, numbers),
    st.builds(Compare, st.just(Time()), signs, st.integers(0, 9)),
    st.builds(Compare, of_member, signs, member_literals),
    one_of(of_bytes, byte_literals),
    one_of(of_number, numbers),
    one_of(of_member, member_literals),
    st.builds(Contains, of_bytes, texts, st.booleans()),
    st.builds(Contains, of_member, texts, st.booleans()),
    st.builds(Exists, st.one_of(of_bytes, of_member, st.just(Time()))),
    st.builds(Like, st.one_of(of_bytes, of_member), st.text("aüb%_7\\\n", max_size=5)),
)


def several(kind: Any, inner: Any) -> Any:
    flat = inner.filter(lambda part: not isinstance(part, kind))
    return st.builds(kind, st.lists(flat, min_size=2, max_size=3).map(tuple))


wheres = st.recursive(
    conditions,
    lambda inner: st.one_of(
        several(All, inner),
        several(Either, inner),
        st.builds(Not, inner.filter(lambda part: not isinstance(part, Not))),
    ),
    max_leaves=6,
)


# -- the same in plain Python ------------------------------------------------------------------


def holds(where: Any, record: Record) -> bool:
    match where:
        case All(parts):
            return all(holds(part, record) for part in parts)
        case Either(parts):
            return any(holds(part, record) for part in parts)
        case Not(part):
            return not holds(part, record)
        case Text(text):
            return any(data is not None and text in data for data in (record.key, record.value))
        case Compare(field, sign, literal):
            return any(_compared(one, sign, literal) for one in there(field, record))
        case OneOf(field, literals):
            return any(_compared(o, "=", lit) for o in there(field, record) for lit in literals)
        case Contains(field, literal, at_start):
            return any(_contained(one, literal, at_start) for one in there(field, record))
        case Exists(field):
            return bool(there(field, record))
        case Like(field, pattern):
            return any(_like(one, pattern) for one in there(field, record))
    raise AssertionError(where)


def there(field: Any, record: Record) -> list[Any]:
    """The things of a record that a field means, none where it has none."""
    match field:
        case Number("offset"):
            return [record.offset]
        case Number("partition"):
            return [PARTITION]
        case Number("size"):
            return [] if record.value is None else [len(record.value)]
        case Time():
            return [] if record.timestamp_ms < 0 else [record.timestamp_ms]
        case Bytes(name):
            found = getattr(record, name)
            return [] if found is None else [found]
        case Header(name):
            return [
                Nothing if data is None else data for key, data in record.headers if key == name
            ]
        case Member(path):
            try:
                document = json.loads(record.value.decode())
            except (AttributeError, ValueError):
                return []
            return list(reached(document, path))
    raise AssertionError(field)


Nothing = object()  # the value of a header without one


def _compared(found: Any, sign: str, literal: Any) -> bool:
    if not isinstance(found, bytes):
        return found is not Nothing and compares(found, sign, literal)
    if isinstance(literal, (str, bytes)):
        wanted = literal.encode() if isinstance(literal, str) else literal
        order = (found > wanted) - (found < wanted)
        return compares(order, sign, 0)
    try:
        text = found.decode("ascii")
        number = int(text) if text.lstrip("-").isdecimal() else float(text)
    except ValueError:
        return False
    plain = (
        text.lstrip("-").replace(".", "", 1).isdigit() and text[:1] not in "+." and text[-1] != "."
    )
    return plain and compares(number, sign, literal)


def _like(found: Any, pattern: str) -> bool:
    if isinstance(found, bytes):
        found = found.decode(errors="surrogateescape")
    if not isinstance(found, str):
        return False
    if not pattern:
        return not found
    if pattern[0] == "%":
        return any(_like(found[at:], pattern[1:]) for at in range(len(found) + 1))
    return bool(found) and pattern[0] in ("_", found[0]) and _like(found[1:], pattern[1:])


def _contained(found: Any, literal: str, at_start: bool) -> bool:
    if isinstance(found, list):
        return not at_start and any(compares(one, "=", literal) for one in found)
    if isinstance(found, bytes):
        wanted: Any = literal.encode()
    elif isinstance(found, str):
        wanted = literal
    else:
        return False
    return found.startswith(wanted) if at_start else wanted in found


@given(found=rows, skipped=st.integers(0, 3), where=wheres)
def test_it_holds_for_the_rows_that_plain_python_finds(found, skipped, where):
    records = batch(found).slice(skipped)  # its arrays begin in the middle, as those of a page may
    expected = [record for record in to_records(TP, records) if holds(where, record)]
    assert to_records(TP, matching(where, records, PARTITION)) == expected


def test_ids_of_64_bits_that_are_one_double_are_told_apart():
    ids = [2**53 + 1, 2**53, 2**63, 2**64 - 1, 2**64 - 2, -(2**63) - 1]
    found = batch([(0, str(one).encode(), None, [("id", str(one).encode())]) for one in ids])
    for one in ids:
        for field in ("key", "header.id"):
            matched = matching(parse(f"{field} = {one}"), found, PARTITION)
            assert matched["key"].to_pylist() == [str(one).encode()]
    assert matching(parse(f"key >= {2**64 - 1}"), found, PARTITION)["offset"].to_pylist() == [3]


@given(where=wheres)
def test_its_text_says_the_same(where):
    assert parse(write(where), now=NOW) == where


@given(found=rows, where=wheres)
def test_matches_lie_within_the_bounds(found, where):
    records = to_records(TP, batch(found))
    bounds = Bounds.of(where)
    for record in records:
        if holds(where, record):
            assert bounds.offsets[0] <= record.offset <= bounds.offsets[1]
            assert bounds.may_match(record.timestamp_ms, record.timestamp_ms)
            assert bounds.partitions is None or PARTITION in bounds.partitions
            assert bounds.keys is None or record.key in bounds.keys


# -- texts -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "where"),
    [
        ("", Always()),
        ("  ", Always()),
        ("N229JB", Text(b"N229JB")),
        (" delayed by ", Text(b"delayed by")),
        ("time flies", Text(b"time flies")),
        ("(see below)", Text(b"(see below)")),
        ('"origin": "JFK"', Text(b'"origin": "JFK"')),
        ('"key = 1"', Text(b"key = 1")),
        ("0x00", Text(b"\x00")),
        ("0xyz", Text(b"0xyz")),
        ("key == 'a'", Compare(Bytes("key"), "=", "a")),
        ("KEY <> 0x00FF", Compare(Bytes("key"), "!=", b"\x00\xff")),
        ("key = 0x", Compare(Bytes("key"), "=", b"")),
        (r'key = "\u00fc\n"', Compare(Bytes("key"), "=", "ü\n")),
        (r"""key = 'a"b\'c'""", Compare(Bytes("key"), "=", "a\"b'c")),
        ("value.in = 1", Compare(Member(("in",)), "=", 1)),
        ("value.dep-delay>-6.5e1", Compare(Member(("dep-delay",)), ">", -65.0)),
        ("value[0][-1].*[*] exists", Exists(Member((0, -1, None, None)))),
        ('header.x-y starts with "text/"', Contains(Header("x-y"), "text/", True)),
        ('value.x contains 3', Contains(Member(("x",)), 3)),
        ("KEY is Null", Not(Exists(Bytes("key")))),
        ("header.x is not null", Exists(Header("x"))),
        (
            "value.x is null",
            Either((Not(Exists(Member(("x",)))), Compare(Member(("x",)), "=", None))),
        ),
        (
            "value.x is not null",
            All((Exists(Member(("x",))), Compare(Member(("x",)), "!=", None))),
        ),
        ("key like 'c1%'", Like(Bytes("key"), "c1%")),
        ('value.x not like "_%"', Not(Like(Member(("x",)), "_%"))),
        (
            "offset between 1 and 5",
            All((Compare(Number("offset"), ">=", 1), Compare(Number("offset"), "<=", 5))),
        ),
        ('timestamp >= "2013-07-04 12:00"', Compare(Time(), ">=", NOON_MS)),
        ('key = "a" AND "b"', All((Compare(Bytes("key"), "=", "a"), Text(b"b")))),
        ("value.x not in (1, null)", Not(OneOf(Member(("x",)), (1, None)))),
        ('time >= "2013-07-04 14:00 Europe/Berlin"', Compare(Time(), ">=", NOON_MS)),
        ('time < "1 hour ago"', Compare(Time(), "<", NOON_MS - 3_600_000)),
        ('time < "12:00"', Compare(Time(), "<", NOON_MS)),
        (f"time = {NOON_MS}", Compare(Time(), "=", NOON_MS)),
        (
            'key = "a" OR key = "b" and NOT offset < 5',
            Either((
                Compare(Bytes("key"), "=", "a"),
                All((Compare(Bytes("key"), "=", "b"), Not(Compare(Number("offset"), "<", 5)))),
            )),
        ),
    ],
)  # fmt: skip
def test_texts_as_they_are_typed(text, where):
    assert parse(text, now=NOW) == where


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("key = ", 6, "expected"),
        ("key = N229JB", 6, 'texts stand in quotes: "N229JB"'),
        ('key = "a" an offset < 1', 10, "expected the end, and, or"),
        ('(key = "a"', 10, r"expected and, or, \)"),
        ('size > "x"', 7, "size is a number"),
        ("key = true", 6, "only members"),
        ("key = null", 6, "is null, or is not null"),
        ("offset like 'a'", 12, "only texts are like"),
        ('key = "a" && offset > 5', 10, "expected the end, and, or"),
        ('key = "a" or qty > 7', 13, r"no field qty; did you mean value\.qty\?"),
        ("offset => 5", 8, "expected"),
        ('key not contains "x"', 8, "expected between, in, like"),
        ("time > 2013-07-04", 11, "expected the end, and, or"),
        ("value.a = 0x00", 10, "JSON has no bytes"),
        (r'key = "\q"', 6, "escape"),
        ("header exists", 0, "a header has a name"),
        ("key.a = 1", 0, "has no members"),
        ("offset contains 1", 16, "only texts"),
        ('time > "soon"', 7, "'soon' is not a time"),
        ("time = true", 7, "a time is a text"),
        ("(" * 200 + "key exists" + ")" * 200, MAX_DEPTH, "levels deep"),
        ("not " * 5000 + "key exists", 4 * MAX_DEPTH, "levels deep"),
        ("size > 1 and " * 80_000 + "key exists", 999 * 13 + 9, r"1,000 comparisons: .* in \("),
        ("value" + ".a" * 400_000 + " exists", 5 + 2 * 10_000, "10,000 steps into members"),
    ],
)
def test_errors_point_at_the_character(text, at, said):
    with pytest.raises(InvalidArgumentError, match=said) as caught:
        parse(text, now=NOW)
    first, line, pointer = str(caught.value).split("\n", 2)
    assert first == "the expression cannot be read:"
    column = pointer.index("^") - 2
    if line.startswith("  … "):
        column += at - 60 - 2
    assert column == at


@pytest.mark.parametrize(
    ("text", "at", "said"),
    [
        ("qty > 7", 0, "no field qty; did you mean value.qty?"),
        ("qty>=7", 0, "no field qty; did you mean value.qty?"),
        ('customer = "c165"', 0, "no field customer; did you mean value.customer?"),
        ("customer=c165", 0, "no field customer; did you mean value.customer?"),
        ("customer == 'c165' AND qty<>7", 0, "no field customer; did you mean value.customer?"),
        ("foo > bar", 0, "no field foo; did you mean value.foo?"),
        ("order.lines[0].qty != 7", 0, "did you mean value.order.lines[0].qty?"),
        ("not (qty > 7)", 5, "no field qty; did you mean value.qty?"),
        ("qty is not null", 0, "no field qty; did you mean value.qty?"),
        ("qty in (1, 2)", 0, "no field qty; did you mean value.qty?"),
        ("qty between 1 and 5", 0, "no field qty; did you mean value.qty?"),
        ("customer like 'c1%'", 0, "no field customer; did you mean value.customer?"),
        ('customer contains "c1"', 0, "no field customer; did you mean value.customer?"),
        ("customer exists", 0, "no field customer; did you mean value.customer?"),
        ("ofset > 5", 0, "did you mean value.ofset? Fields are key, value, header, time, offset,"),
        ("partion = 0", 0, "no field partion;"),
        ("vlaue.qty > 7", 0, "no field vlaue.qty;"),
        ('heder.source = "x"', 0, "no field heder.source;"),
        ("value->>'qty' > 7", 5, "a member (.name)"),
        ("value:qty > 7", 5, "a member (.name)"),
        ("$.qty > 7", 0, "a field (key, value"),
        ("`qty` > 7", 0, "a field (key, value"),
        ('"qty" > 7', 6, "expected the end, and, or"),
        ("7 < qty", 0, "a field (key, value"),
        ("length(value) > 7", 0, "a field (key, value"),
        ("where key = 'a'", 0, "a field (key, value"),
        ("key ilike 'c%'", 4, "like"),
        ("key ~ 'c.*'", 4, "a comparison"),
        ('!(key = "a")', 0, "not,"),
        ('JFK and time >= "yesterday"', 0, 'texts stand in quotes: "JFK".'),
        ('JFK || key = "a"', 0, "expected"),
    ],
)
def test_a_text_that_is_meant_as_an_expression_is_not_looked_for(text, at, said):
    with pytest.raises(InvalidArgumentError) as caught:
        parse(text, now=NOW)
    first, line, pointer = str(caught.value).split("\n", 2)
    assert (first, line) == ("the expression cannot be read:", f"  {text}")
    assert pointer.index("^") - 2 == at
    assert said in pointer
    quoted = pointer.split("To look for the text itself, quote it: ")[1]
    assert parse(quoted) == Text(text.encode())


@pytest.mark.parametrize(
    "text",
    [
        "time flies",
        "time is money",
        "key does not exist",
        "called in (main.c)",
        "no such file or directory",
        "this and that",
        "List<String>",
        "a -> b",
        "key->value",
        "https://example.org/?a=1&b=2",
        '<a href="x">',
        '"qty": 7',
        '{"qty": 7}',
        "qty: 7",
        "ERROR: value missing",
        "2013-07-04 12:00",
        "abcd==",
        "100%",
        "N229JB",
        "it's",
        "select * from orders",
        "x" * 100_000,
        "a.b.c",
        "foo(bar)",
        "1 < 2",
    ],
)
def test_an_ordinary_text_is_looked_for(text):
    assert parse(text) == Text(text.encode())
    assert write(parse(text)) == text


@pytest.mark.parametrize("where", [5, b"key", None])
def test_what_is_no_text_is_refused(where):
    with pytest.raises(InvalidArgumentError, match="not the text"):
        parse(where)


def test_a_lone_surrogate_and_a_megabyte_end_in_a_sentence():
    with pytest.raises(InvalidArgumentError, match="UTF-8"):
        parse("\ud800")
    assert parse("x" * 1_000_000) == Text(b"x" * 1_000_000)
    with pytest.raises(InvalidArgumentError, match="too long"):
        parse("x" * 2_000_000)


@given(st.text("key value.a = != < \"'()[]*, andornotin 0x1.5\\", max_size=40))
def test_any_text_is_read_or_refused_with_a_pointer(text):
    try:
        where = parse(text, now=NOW)
    except InvalidArgumentError as error:
        said = str(error)
    else:
        said = "^"
        assert parse(write(where), now=NOW) == where
    assert "^" in said


def test_a_simple_text_is_not_case_blind_and_finds_keys_too():
    records = batch(
        [(0, b"N229JB", b"{}", []), (0, None, b"x N229JB", []), (0, b"n229jb", b"", [])]
    )
    assert matching(parse("N229JB"), records, 0).num_rows == 2


#: What a pattern could take for something else, what is no text, and what is longer than a pattern.
PIECES = [
    *(bytes([byte]) for byte in b"\0\n\r\\.*+?()[]{}|^$ aAQE_\x7f\x80\xff"),
    b"\xc3\xa9",
    b"ab",
]
TEXTS = st.lists(st.sampled_from(PIECES), max_size=6).map(b"".join)


@given(st.lists(TEXTS | st.none(), max_size=6), TEXTS | TEXTS.map(lambda text: text * 400))
def test_a_text_is_found_where_its_bytes_are(data: list[bytes | None], text: bytes) -> None:
    data = [*data, b"<" + text + b">"]
    found = matching(Text(text), batch([(0, None, value, []) for value in data]), PARTITION)
    wanted = [at for at, value in enumerate(data) if value is not None and text in value]
    assert found["offset"].to_pylist() == wanted
