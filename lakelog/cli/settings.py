"""Settings given on the command line as NAME=VALUE."""

from __future__ import annotations

from collections.abc import Sequence

from ..errors import InvalidConfigError


def parse_settings(option: str, pairs: Sequence[str]) -> dict[str, object | None]:
    """The settings as text, by name.

    Raises:
        InvalidConfigError: no ``=``, or a name twice.
    """
    settings: dict[str, object | None] = {}
    for pair in pairs:
        name, equals, value = (part.strip() for part in pair.partition("="))
        if not equals:
            raise InvalidConfigError(f"{option} {pair!r} should read NAME=VALUE", name=pair)
        if settings.setdefault(name, value) != value:
            raise InvalidConfigError(
                f"{option} gives {name} twice, as {settings[name]!r} and as {value!r}: give it "
                "once",
                name=name,
            )
    return settings


def parse_changes(pairs: Sequence[str], unset: Sequence[str]) -> dict[str, object | None]:
    """The changes that --config and --unset ask for; None means back to the default.

    Raises:
        InvalidConfigError: see `parse_settings`; or both ask for the same setting.
    """
    changes = parse_settings("--config", pairs)
    for name in unset:
        if name in changes:
            raise InvalidConfigError(
                f"--config sets {name} and --unset takes it back: give one of the two", name=name
            )
    return changes | dict.fromkeys(unset)
