"""Texts that are meant as an expression although they are none.

Such a text is refused rather than looked for: nearly always nothing holds it, and "no matches"
would be taken for an answer. Who looks for the text itself puts it in quotes.
"""

from __future__ import annotations

import json
import re

FIELDS = ("key", "value", "header", "headers", "time", "timestamp", "offset", "partition", "size")

_SHOWN = [name for name in FIELDS if name not in ("headers", "timestamp")]

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


def no_field(here: str) -> str | None:
    """What to write for a name that is compared in the place of a field; None: there is none."""
    found = re.match(rf"({_NAME}){_COMPARED}", here, _FLAGS)
    if found is None:
        return None
    name = found[1]
    return f"no field {name}; did you mean value.{name}? Fields are {', '.join(_SHOWN)}"


def quoted(text: str) -> str:
    """How to look for the text itself."""
    text = text.strip()
    if len(text) > _LONGEST_QUOTED:
        return "To look for the text itself, put it in quotes"
    is_plain = text.isprintable() and "'" not in text and "\\" not in text
    shown = f"'{text}'" if is_plain else json.dumps(text, ensure_ascii=False)
    return f"To look for the text itself, quote it: {shown}"
