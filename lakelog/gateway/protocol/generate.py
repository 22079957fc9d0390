"""Writes ``messages.py`` from Kafka's own definitions of its messages.

Run by hand, when versions are to be served that it does not have. The second file is what tests
make the module from again, where there is no jar::

    python -m lakelog.gateway.protocol.generate PATH_TO_JAR tests/gateway/definitions.json

Each struct of a message becomes a class, and each layout that it has had a reader and a writer: a
function that versions share whose bytes are the same. A run of numbers is one `struct.Struct`.
Versions that nobody asks for (`SERVED`) are left out, and fields that only those have.
"""

from __future__ import annotations

import json
import keyword
import sys
import textwrap
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from .definitions import KINDS, SERVED, Definitions, Versions, snake

MESSAGES = Path(__file__).with_name("messages.py")

#: type → its letters for `struct`, in names and in formats, its size, and what it is in Python
_FIXED: dict[str, tuple[str, str, int, str]] = {
    "bool": ("t", "?", 1, "bool"),
    "int8": ("b", "b", 1, "int"),
    "int16": ("h", "h", 2, "int"),
    "uint16": ("H", "H", 2, "int"),
    "int32": ("i", "i", 4, "int"),
    "uint32": ("I", "I", 4, "int"),
    "int64": ("q", "q", 8, "int"),
    "float64": ("d", "d", 8, "float"),
    "uuid": ("u", "16s", 16, "UUID"),
}
_SIMPLE = {*_FIXED, "string", "bytes", "records"}
#: Names that functions have for their bytes, their position, and what they write to.
_TAKEN = {"b", "p", "w", "o", "tags", *keyword.kwlist}

_HEADER = '''"""Kafka's messages, generated from its definitions: do not edit, run ``generate.py``.

A class is a request, a response, or, within one of those, a struct of it; the number beside a field
is the version that brought it or those that have it, if not all do. The functions below a message
read and write it, named by the first version of a layout: those of ``unpack_ih`` and ``pack_ih``
take an int32 and an int16, ``u`` is a uuid, ``t`` a truth value, and ``x`` the empty tagged fields
after them.

From the message definitions of Apache Kafka {version}, which are

    Copyright The Apache Software Foundation, licensed to it under one or more contributor license
    agreements, and by it under the Apache License, Version 2.0; you may obtain a copy of the
    License at http://www.apache.org/licenses/LICENSE-2.0
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct
from uuid import UUID

from msgspec import field

'''


class Field:
    """A field of a struct, as a version may have it."""

    def __init__(self, definition: Mapping[str, Any], owner: str) -> None:
        self.name = snake(definition["name"])
        if self.name in _TAKEN:
            raise ValueError(f"{owner} has a field {self.name}")
        self.type = definition["type"].removeprefix("[]")
        self.is_array = definition["type"].startswith("[]")
        self.versions = Versions.of(definition["versions"])
        self.nullable = Versions.of(definition.get("nullableVersions"))
        self.tagged = Versions.of(definition.get("taggedVersions"))
        self.tag: int = definition.get("tag", -1)
        self.default = definition.get("default")
        if "flexibleVersions" in definition:
            raise ValueError(f"{owner}.{self.name} is flexible by itself")

    @property
    def is_struct(self) -> bool:
        return self.type not in _SIMPLE

    @property
    def is_run(self) -> bool:
        return self.type in _FIXED and not self.is_array

    def is_optional(self, served: Versions) -> bool:
        """Whether it may be None: where null is legal, and for a tagged struct that is absent."""
        met = self.versions & served
        is_tagged = met.first in self.tagged and self.is_struct and not self.is_array
        return is_tagged or bool(self.nullable & met)

    def value(self, root: str, served: Versions) -> str:
        """Its default, as Python."""
        if self.default == "null":
            return "None"
        if self.is_array:
            return "()"
        if self.is_struct:
            return "None" if self.is_optional(served) else f"{root}.{self.type}()"
        if self.type == "string":
            return json.dumps(self.default or "")
        if self.type in ("bytes", "records"):
            return 'b""'
        if self.type == "uuid":
            return "ZERO_UUID"
        if self.type == "bool":
            return str(self.default in (True, "true"))
        if self.type == "float64":
            return str(float(self.default or 0))
        return str(int(str(self.default or 0), 0))

    def annotation(self, root: str, served: Versions, is_request: bool) -> str:
        if self.is_struct:
            one = f"{root}.{self.type}"
        else:
            others = {"string": "str", "bytes": "bytes"}
            others["records"] = "Buffer" if is_request else "Records"
            one = others.get(self.type) or _FIXED[self.type][3]
        whole = f"Sequence[{one}]" if self.is_array else one
        return f"{whole} | None" if self.is_optional(served) else whole


class Generated:
    """The classes and functions of one message."""

    def __init__(
        self,
        definition: Mapping[str, Any],
        served: Versions,
        names: set[str],
        runs: set[str],
    ) -> None:
        self.root: str = definition["name"]
        self.is_request = definition["type"] == "request"
        self.api_key: int = definition["apiKey"]
        self.served = served
        self.flexible = Versions.of(definition["flexibleVersions"])
        self.names = names  # of primitives that are used
        self.runs = runs  # names of those of runs
        self.structs: dict[str, list[Field]] = {}
        self.functions: list[str] = []
        self._by_body: dict[tuple[str, str], str] = {}
        valid = Versions.of(definition["validVersions"])
        if valid & served != served:
            raise ValueError(f"{self.root} has {valid}, not {served}")
        self._collect(self.root, definition["fields"])
        for struct in definition.get("commonStructs", ()):
            self._collect(struct["name"], struct["fields"])

    def _collect(self, name: str, fields: Sequence[Mapping[str, Any]]) -> None:
        self.structs[name] = [
            field
            for field in (Field(definition, name) for definition in fields)
            if field.versions & self.served
        ]
        for definition in fields:
            if "fields" in definition and Versions.of(definition["versions"]) & self.served:
                self._collect(definition["type"].removeprefix("[]"), definition["fields"])

    def source(self) -> str:
        """The message's part of the module."""
        readers = {v: self._function("read", self.root, v) for v in self._served()}
        read, self.functions = self.functions, []
        writers = {v: self._function("write", self.root, v) for v in self._served()}
        tables: list[str] = []
        for name, table in (("readers", readers), ("writers", writers)):
            head = f"{self.root}.{name} = since({self.served.last}, {{"
            tables += filled(0, head, list(firsts(table)), "})")
        return "\n\n".join([self._classes(), *read, *self.functions, "\n".join(tables) + "\n"])

    def _served(self) -> range:
        return range(self.served.first, self.served.last + 1)

    def _classes(self) -> str:
        kind = "request" if self.is_request else "response"
        first, last = self.served
        versions = f"version {first}" if first == last else f"versions {first}-{last}"
        lines = [
            f"class {self.root}(ApiMessage):",
            f'    """API key {self.api_key}, the {kind}, {versions}."""',
            "",
        ]
        self.names |= {"ApiMessage"}
        for name in self._used():
            self.names |= {"Message"}
            lines += [f"    class {name}(Message):"]
            lines += [f"    {line}" for line in self._fields(name)] or ["        pass"]
            lines += [""]
        lines += self._fields(self.root)
        return "\n".join(lines).rstrip() + "\n"

    def _used(self) -> list[str]:
        """The structs that some served version has, each below those it holds."""
        found: list[str] = []

        def visit(name: str) -> None:
            for field in self.structs[name]:
                if field.is_struct:
                    visit(field.type)
            if name not in found:
                found.append(name)

        visit(self.root)
        return found[:-1]

    def _fields(self, struct: str) -> list[str]:
        lines = []
        for field in self.structs[struct]:
            default = self._named(field.value(self.root, self.served))
            annotation = field.annotation(self.root, self.served, self.is_request)
            self.names |= {"Buffer", "Records"} & set(annotation.split())
            head = f"{field.name}: {annotation} = "
            comment = field.versions.of_all(self.served)
            if default.endswith("()") and field.is_struct and not field.is_array:
                lines += filled(4, f"{head}field(", [f"default_factory=lambda: {default}"])
            elif len(head + default) > 92:
                before, bracket, after = head.partition("[")
                one, bracket_after, after = after.partition("]")
                lines += filled(4, before + bracket, [one], bracket_after + after + default)
            else:
                lines.append(f"    {head}{default}{comment}")
        return lines

    # -- functions -----------------------------------------------------------------------------

    def _function(self, kind: str, struct: str, version: int) -> str:
        """The name of the function that reads or writes a struct of a version."""
        body = (self._reading if kind == "read" else self._writing)(struct, version)
        name = self._by_body.get((kind, body))
        if name is None:
            part = "" if struct == self.root else f"_{snake(struct)}"
            name = f"_{kind}_{snake(self.root)}{part}_{version}"
            self._by_body[kind, body] = name
            arguments = "b, p" if kind == "read" else "w, o"
            self.functions.append(f"def {name}({arguments}):\n{body}")
        return name

    def _of_version(self, struct: str, version: int) -> tuple[list[Field], list[Field]]:
        """Its fields in their order, and those that are tagged, by their tags."""
        fields = [field for field in self.structs[struct] if version in field.versions]
        tagged = [field for field in fields if version in field.tagged]
        return (
            [field for field in fields if field not in tagged],
            sorted(tagged, key=lambda field: field.tag),
        )

    def _reading(self, struct: str, version: int) -> str:
        fields, tagged = self._of_version(struct, version)
        lines: list[str] = []
        skipped = 0  # bytes behind p that are read

        def at() -> str:
            return f"p + {skipped}" if skipped else "p"

        for run in runs_of(fields):
            if run[0].is_run:
                size = sum(_FIXED[field.type][2] for field in run)
                names = [field.name for field in run]
                call = f" = {self._struct('unpack', run)}(b, {at()})"
                if len(run) == 1:
                    lines.append(f"    ({names[0]},){call}")
                elif len(line := f"    {', '.join(names)}{call}") <= 100:
                    lines.append(line)
                else:
                    lines += filled(4, "(", names, f"){call}")
                for field in run:
                    if field.type == "uuid":
                        self.names.add("uuid_of")
                        lines.append(f"    {field.name} = uuid_of({field.name})")
                skipped += size
                continue
            (field,) = run
            reader, arguments = self._reader(field, version)
            lines += filled(4, f"{field.name}, p = {reader}(", [f"b, {at()}", *arguments])
            skipped = 0
        if tagged:
            lines.append(f"    tags, p = {self._primitive('read_tags')}(b, {at()})")
            for field in tagged:
                reader, arguments = self._reader(field, version)
                head = f"{field.name} = {self._primitive('read_tag')}("
                default = self._named(field.value(self.root, self.served))
                tail = f") if {field.tag} in tags else {default}"
                lines += filled(4, head, [f"tags[{field.tag}]", reader, *arguments], tail)
            skipped = 0
        end = at()
        if version in self.flexible and not tagged:
            end = f"{self._primitive('skip_tags')}(b, {at()})"
        name = self.root if struct == self.root else f"{self.root}.{struct}"
        lines += filled(4, f"return {name}(", self._arguments(struct, version), f"), {end}")
        return "\n".join(lines) + "\n"

    def _arguments(self, struct: str, version: int) -> list[str]:
        """What the constructor is given, up to the last field that the version has."""
        given = [
            field.name
            if version in field.versions
            else self._named(field.value(self.root, self.served))
            for field in self.structs[struct]
        ]
        has = [version in field.versions for field in self.structs[struct]]
        return given[: len(has) - has[::-1].index(True)] if any(has) else []

    def _named(self, default: str) -> str:
        return self._primitive(default) if default == "ZERO_UUID" else default

    def _reader(self, field: Field, version: int) -> tuple[str, list[str]]:
        """A function's name, and its arguments behind the bytes and the position."""
        kind = "compact_" if version in self.flexible else ""
        kind += "nullable_" if version in field.nullable else ""
        if field.is_array:
            if field.type in _FIXED and field.type != "uuid":
                letter = _FIXED[field.type][1]
                return self._primitive(f"read_{kind}numbers"), [f'"{letter}"']
            size = str(self._min_size(field, version))
            if field.is_struct:
                item = self._function("read", field.type, version)
            else:
                prefix = "compact_" if version in self.flexible and field.type != "uuid" else ""
                item = self._primitive(f"read_{prefix}{field.type}")
            return self._primitive(f"read_{kind}array"), [size, item]
        if field.is_struct:
            function = self._function("read", field.type, version)
            if version in field.nullable:
                return self._primitive("read_nullable_struct"), [function]
            return function, []
        if field.type == "uuid":
            return self._primitive("read_uuid"), []
        if field.type in _FIXED:
            return self._primitive("read_number"), [f'"{_FIXED[field.type][1]}"']
        return self._primitive(f"read_{kind}{field.type}"), []

    def _min_size(self, field: Field, version: int) -> int:
        """Of a value, or of an array's item, in bytes."""
        if field.type in _FIXED:
            return _FIXED[field.type][2]
        is_flexible = version in self.flexible
        if not field.is_struct:
            return 1 if is_flexible else 2 if field.type == "string" else 4
        fields, _ = self._of_version(field.type, version)
        size = sum(self._min_size_of(inner, version) for inner in fields) + is_flexible
        if not size:
            raise ValueError(f"{self.root}.{field.type} has no bytes in version {version}")
        return size

    def _min_size_of(self, field: Field, version: int) -> int:
        if field.is_array:
            return 1 if version in self.flexible else 4
        if field.is_struct and version in field.nullable:
            return 1
        return self._min_size(field, version)

    def _writing(self, struct: str, version: int) -> str:
        fields, tagged = self._of_version(struct, version)
        is_plain = version in self.flexible and not tagged
        lines: list[str] = []
        packed: list[str] = []  # what one call writes

        def flush() -> None:
            if packed:
                lines.extend(filled(4, "w(", packed, ")", " + "))
                packed.clear()

        all_runs = list(runs_of(fields))
        for run in all_runs:
            if run[0].is_run:
                ends = is_plain and run is all_runs[-1]
                values = [f"o.{field.name}{'.bytes' * (field.type == 'uuid')}" for field in run]
                packed.append(f"{self._struct('pack', run, ends)}({', '.join(values)})")
                is_plain = is_plain and not ends
                continue
            (field,) = run
            function, arguments = self._writer(field, version)
            if function.startswith("pack_"):
                packed.append(f"{function}({', '.join(arguments)})")
            else:
                flush()
                lines += filled(4, f"{function}(", ["w", *arguments])
        if tagged:
            flush()
            lines.append("    tags = []")
            for field in tagged:
                function, arguments = self._writer(field, version)
                if function.startswith("pack_"):
                    value = f"{function}({', '.join(arguments)})"
                else:
                    value = f"{self._primitive('written')}({', '.join([function, *arguments])})"
                lines.append(f"    if {self._is_set(field)}:")
                lines += filled(8, f"tags.append(({field.tag}, ", [value], "))")
            self.names |= {"pack_tags", "NO_TAGS"}
            packed.append("pack_tags(tags) if tags else NO_TAGS")
        elif is_plain:
            packed.append(self._primitive("NO_TAGS"))
        flush()
        return "\n".join(lines or ["    pass"]) + "\n"

    def _is_set(self, field: Field) -> str:
        """Whether a tagged field is not its default, and so has to be written."""
        default = field.value(self.root, self.served)
        if default == "None":
            return f"o.{field.name} is not None"
        if default == "False":
            return f"o.{field.name}"
        if field.is_array and not field.is_optional(self.served):
            return f"o.{field.name}"
        if field.is_array:
            return f"o.{field.name} is None or o.{field.name}"
        return f"o.{field.name} != {self._named(default)}"

    def _writer(self, field: Field, version: int) -> tuple[str, list[str]]:
        """A function's name, and its arguments: of a packer all, of a writer those behind w."""
        kind = "compact_" if version in self.flexible else ""
        kind += "nullable_" if version in field.nullable else ""
        value = f"o.{field.name}"
        if field.is_array:
            if field.type in _FIXED and field.type != "uuid":
                letter = _FIXED[field.type][1]
                return self._primitive(f"pack_{kind}numbers"), [value, f'"{letter}"']
            if field.is_struct:
                function = self._function("write", field.type, version)
                return self._primitive(f"write_{kind}array"), [value, function]
            prefix = "compact_" if version in self.flexible and field.type != "uuid" else ""
            item = self._primitive(f"pack_{prefix}{field.type}")
            return self._primitive(f"pack_{kind}array"), [value, item]
        if field.is_struct:
            function = self._function("write", field.type, version)
            if version in field.nullable:
                return self._primitive("write_nullable_struct"), [value, function]
            return function, [value]
        if field.type == "uuid":
            return self._primitive("pack_uuid"), [value]
        if field.type in _FIXED:
            return self._primitive("pack_number"), [f'"{_FIXED[field.type][1]}"', value]
        verb = "write" if field.type == "records" else "pack"
        return self._primitive(f"{verb}_{kind}{field.type}"), [value]

    def _primitive(self, name: str) -> str:
        self.names.add(name)
        return name

    def _struct(self, verb: str, run: Iterable[Field], ends_message: bool = False) -> str:
        letters = "".join(_FIXED[field.type][0] for field in run) + "x" * ends_message
        self.runs.add(name := f"{verb}_{letters}")
        return name


# -- texts -------------------------------------------------------------------------------------


def runs_of(fields: Iterable[Field]) -> Iterator[list[Field]]:
    """Fields of fixed sizes that follow each other, and each other field by itself."""
    run: list[Field] = []
    for field in fields:
        if field.is_run:
            run.append(field)
            continue
        if run:
            yield run
        run = []
        yield [field]
    if run:
        yield run


def firsts(table: Mapping[int, str]) -> Iterator[str]:
    """The table's entries that differ from those before them."""
    for version, name in table.items():
        if table.get(version - 1) != name:
            yield f"{version}: {name}"


def filled(
    indent: int, head: str, items: Sequence[str], tail: str = ")", between: str = ", "
) -> list[str]:
    """A call on one line, or with its arguments on lines of their own, as many as fit."""
    text = between.join(items)
    space = " " * indent
    if len(line := f"{space}{head}{text}{tail}") <= 100:
        return [line]
    rows = textwrap.wrap(text, 96 - indent, break_long_words=False, break_on_hyphens=False)
    return [f"{space}{head.rstrip()}", *(f"{space}    {row}" for row in rows), f"{space}{tail}"]


def module(definitions: Definitions) -> str:
    """The source of ``messages.py``."""
    names = {"Api", "since"}
    runs: set[str] = set()
    parts = []
    apis = []
    keyed = {name: definitions.messages[f"{name}Request"]["apiKey"] for name in SERVED}
    for name in sorted(SERVED, key=keyed.__getitem__):
        served = Versions(*SERVED[name])
        messages = [definitions.messages[f"{name}{kind}"] for kind in KINDS]
        parts.append(f"{f'# -- {keyed[name]}: {name} ':-<96}\n")
        parts += [Generated(message, served, names, runs).source() for message in messages]
        flexible = Versions.of(messages[0]["flexibleVersions"])
        first = flexible.first if flexible else None
        classes = [f"{name}{kind}" for kind in KINDS]
        values = [keyed[name], f'"{name}"', *classes, served.first, served.last, first]
        apis += filled(4, "Api(", [str(value) for value in values], "),")
    imported = sorted(names, key=lambda name: (not name.isupper(), name))
    formats = {letter: format for letter, format, _, _ in _FIXED.values()} | {"x": "x"}
    structs = []
    for name in sorted(runs):
        verb, _, letters = name.partition("_")
        method = "unpack_from" if verb == "unpack" else "pack"
        text = "".join(formats[letter] for letter in letters)
        structs.append(f'{name} = Struct(">{text}").{method}\n')
    return "".join(
        [
            _HEADER.format(version=definitions.kafka_version),
            f"from .primitives import (\n    {(',' + chr(10) + '    ').join(imported)},\n)\n\n",
            *structs,
            "\n\n",
            "\n\n".join(parts),
            "\n\nAPIS = (\n",
            *(f"{line}\n" for line in apis),
            ")\n",
        ]
    )


def main(jar: str, definitions: str | None = None) -> None:
    """Writes the module, and the definitions that it was made from, if a file for them is named."""
    read = Definitions.of_jar(Path(jar))
    MESSAGES.write_text(module(read), "utf-8")
    if definitions is not None:
        Path(definitions).write_text(read.json(), "utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
