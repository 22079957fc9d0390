"""Settings given on the command line as NAME=VALUE."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidConfigError


def parse_settings(option: str, pairs: Sequence[str]) -> dict[str, object | None]:
    """Text by name.

    Raises:
        InvalidConfigError: no ``=``.
    """
    settings: dict[str, object | None] = {}
    for pair in pairs:
        name, equals, value = pair.partition("=")
        if not equals:
            raise InvalidConfigError(f"{option} {pair!r} should read NAME=VALUE", name=pair)
        settings[name.strip()] = value.strip()
    return settings
