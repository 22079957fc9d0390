"""Where the tiers of a log are, and the one way to open them."""

from typing import TYPE_CHECKING

from ..base.lazy_names import lazy_names
from .by_path import PathRoot
from .log_place import ColdRoot, LogPlace, cold_root

if TYPE_CHECKING:
    from .by_name import NamedRoot

__all__ = ["ColdRoot", "LogPlace", "NamedRoot", "PathRoot", "cold_root"]

__getattr__ = lazy_names(__name__, {"NamedRoot": ".by_name"})
