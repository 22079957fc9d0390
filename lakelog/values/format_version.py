"""The formats of entries, tables and definitions, and what is said of newer ones.

One number stands for all three. It grows when an older lakelog would read what is there wrongly,
or delete what it should keep. Whoever meets a larger number, or a part that it does not know, reads
nothing and changes nothing.

| format | what has it                                                                          |
|--------|--------------------------------------------------------------------------------------|
| 1      | everything else                                                                      |
| 2      | a table by name with long properties in pieces (see `cold/by_name/properties.py`);   |
|        | the definition of a topic whose table by name has its id in the name                 |
| 3      | an entry that is a record batch of Kafka's (see `codec/kafka_entry.py`); the         |
|        | definition of a topic with ``lakelog.entry.format=kafka``                            |
"""

from __future__ import annotations

from ..errors import NewerVersionError

#: The largest that this lakelog reads. What says nothing has format 1.
FORMAT_VERSION = 3

#: Of the definition of a topic whose table by name has its id in the name.
NAMED_BY_ID_FORMAT = 2

#: Of entries that are record batches of Kafka's, and the definition of a topic that has them.
KAFKA_FORMAT = 3

#: What it writes wherever the newer one is not needed.
USUAL_FORMAT = 1


def newer(
    what: str, found: str, *, topic: str | None = None, path: str | None = None
) -> NewerVersionError:
    """The error for what only a newer lakelog reads.

    Args:
        what: what was met, such as "the table at …".
        found: what it has that this lakelog does not know.
        topic, path: the error's fields.
    """
    return NewerVersionError(
        f"a newer lakelog wrote {what}: there is {found}, and this one reads format "
        f"{FORMAT_VERSION}. Nothing was read and nothing changed; upgrade lakelog here "
        "(pip install --upgrade lakelog)",
        topic=topic,
        path=path,
    )


def check_format(
    found: object, what: str, *, topic: str | None = None, path: str | None = None
) -> None:
    """Refuse what has a format that this lakelog does not read.

    Args:
        found: what it says of its format; None: nothing.
        what, topic, path: see `newer`.

    Raises:
        NewerVersionError: a larger number, or none at all.
    """
    if found is None:
        return
    text = str(found)
    if not text.isdecimal() or int(text) > FORMAT_VERSION:
        raise newer(what, f"format {text[:40]}", topic=topic, path=path)
