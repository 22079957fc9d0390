"""Texts that are meant as an expression although they are none, and what was meant by them.

Such a text is refused rather than looked for: nearly always nothing holds it, and "no matches"
would be taken for an answer. Who looks for the text itself puts it in quotes.
"""

from __future__ import annotations

import json
import re

FIELDS = ("key", "value", "header", "headers", "time", "timestamp", "offset", "partition", "size")

_LONGEST_QUOTED = 60  # characters of a text that an error shows in quotes
_JOINED_WITHIN = 10_000  # characters of a text in which a comparison is looked for

_FIELD = rf"(?:{'|'.join(FIELDS)})(?!\w|-\w)"
# Bounded, for a text may be a megabyte.
_STEPS = r"(?:\.[\w*-]{1,99}|\[[^\]]{0,99}\]){0,32}"
_NAME = rf"[^\W\d](?:[\w-]{{0,98}}\w)?(?!\w){_STEPS}"
_QUOTED = r"""(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|`[^`]*`)"""
_SIGN = r"(?:=[=>~<]?|!=|<>|[<>]=?|~)"
_ENDS = r"[\s);]*(?:$|(?:and|or)\b|&&|\|\|)"
_TEXTUAL = r"(?:not\s+)?(?:i?like|rlike|regexp|matches|contains|(?:starts|ends)[\s_]*with)"

#: What compares a name with something, or asks whether it is there.
_COMPARED = rf"""(?:
    \s*(?:==?|!=)\s*["'`\w(.-]         # name=x, also where a shell took the quotes away
  | \s*{_SIGN}\s*["'`\d(.-]            # name > 7
  | \s+{_SIGN}\s+\w                    # name > x; but not List<String>
  | \s+{_SIGN}\s*$
  | \s+is\s+(?:not\s+)?null\b{_ENDS}
  | \s+(?:not\s+)?in\s*\(\s*["'\d-]
  | \s+(?:{_TEXTUAL}|is(?:\s+not)?)\s*["'`]
  | \s+(?:not\s+)?i?like\s+\w*%
  | \s+(?:not\s+)?between\s+["'\d-]
  | \s+(?:not\s+)?exists?\b{_ENDS}
  | \s*->>?\s*["']                     # SQL's way to a member
)"""

# Texts, which `re` compiles when they are first needed.
_MEANT = rf"""[\s(]*(?:where\s+)?(?:not[\s(]+|![\s(]*){{0,100}}
    (?:{_NAME}{_COMPARED}
      |(?:\$?\.|@){_NAME}{_COMPARED}                    # as in jq and JSONPath
      |{_FIELD}(?:{_STEPS}\s+\w+\s+["']|(?::|\s*->>?\s*){_NAME}{_COMPARED})
      |\w{{1,99}}\([^()]{{0,99}}\){_COMPARED}                         # a function
      |{_QUOTED}\s*{_SIGN}\s*["'`\d(.\w-]
      |{_QUOTED}\s*(?:&&|\|\|)
      |-?\d[\d.]{{0,40}}(?:\s*{_SIGN}\s*{_FIELD}|\s+{_SIGN}\s+{_NAME}))"""
_JOINED = rf"(?:\b(?:and|or)\s+|(?:&&|\|\|)\s*)(?:not\s+|[(!]\s*)*{_FIELD}{_STEPS}{_COMPARED}"
_FLAGS = re.VERBOSE | re.IGNORECASE | re.DOTALL


def is_meant(text: str) -> bool:
    """Whether a text that does not begin as an expression is meant as one."""
    if re.match(_MEANT, text, _FLAGS):
        return True
    unquoted = re.sub(_QUOTED, '""', text[:_JOINED_WITHIN])
    return re.search(_JOINED, unquoted, _FLAGS) is not None


def what_was_meant(text: str, at: int, *, may_be_field: bool) -> str | None:
    """What to write in the place of what cannot be read; None: nothing is known of it.

    Args:
        at: the character that cannot be read.
        may_be_field: whether a field could stand there.
    """
    here, before = text[at:], text[max(0, at - 200) : at]
    for wrong, right in _WRITTEN:
        if re.match(wrong, here, re.IGNORECASE):
            return right
    if re.match(r"[=<>~]", here) and re.search(r"[=<>]\s*$", before):
        return "comparisons are = != < <= > >="
    if found := re.match(rf"(?::|->>?\s*)({_NAME})|->>?\s*(['\"])(?:\$\.)?(.+?)\2", here):
        return f"a member of a JSON value is {_member(found[1] or found[3])}"
    if (sign := re.match(_SIGN, here)) and (found := re.search(rf"({_QUOTED})\s*$", before)):
        if re.match(rf"\s*{_NAME}", here[sign.end() :]):
            return _FIELD_FIRST
        return f"a text is not compared; did you mean {_member(found[1][1:-1])}?"
    if re.search(r"\bnot\s*$", before) and re.match(r"contains|starts|exists", here):
        return 'not comes before the field: not key contains "x"'
    if re.search(r"\d{4}$", before) and re.match(r"-\d\d?(?!\d)", here):
        return 'a time stands in quotes: "2013-07-04 12:00"'
    return _no_field(here) if may_be_field else None


_FIELD_FIRST = "the field comes first: offset > 5"
_WRITTEN = (
    ("&", "write and"),
    (r"\|", "write or"),
    ("!(?!=)", "write not"),
    (r"where\b", "leave out where"),
    (r"ilike\b", "like tells capitals from small letters; `lakelog sql` has ilike"),
    (r"rlike\b|regexp\b|matches\b|~", "there are no regular expressions; `lakelog sql` has them"),
    (r"starts?_?with\b", "write starts with"),
    (r"ends?[\s_]*with\b", 'write like "%…"'),
    (r"exist\b", "write exists"),
)


def _no_field(here: str) -> str | None:
    if found := re.match(r"(\w+)\(", here):
        return f"there are no functions such as {found[1]}(…); `lakelog sql` has them"
    if re.match(r"-?\d", here):
        return _FIELD_FIRST
    if found := re.match(rf"(?:\$?\.|@)({_NAME})", here):
        return f"a member of a JSON value is {_member(found[1])}"
    if found := re.match(r"`([^`]+)`", here):
        return f"a member of a JSON value is {_member(found[1])}"
    if not (found := re.match(rf"({_NAME}){_COMPARED}", here, _FLAGS)):
        return None
    import difflib  # few need it

    name = found[1]
    root = re.split(r"[.\[]", name)[0]
    close = difflib.get_close_matches(root.lower(), FIELDS, 1, cutoff=0.7)
    if not close or root.lower() == close[0]:
        meant = _member(name)
    elif close[0] in ("value", "header", "headers"):
        meant = close[0] + name[len(root) :]
    elif root == name:
        meant = f"{close[0]}, or {_member(name)}"
    else:
        meant = _member(name)
    return f"no field {name}; did you mean {meant}?"


def _member(name: str) -> str:
    if re.fullmatch(_NAME, name):
        return f"value.{name}"
    return f"value[{json.dumps(name, ensure_ascii=False)}]"


def quoted(text: str) -> str:
    """How to look for the text itself."""
    text = text.strip()
    if len(text) > _LONGEST_QUOTED:
        return "To look for the text itself, put it in quotes"
    is_plain = text.isprintable() and "'" not in text and "\\" not in text
    shown = f"'{text}'" if is_plain else json.dumps(text, ensure_ascii=False)
    return f"To look for the text itself, quote it: {shown}"
