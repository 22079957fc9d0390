"""Where the tiers of a log are, and the one way to open them."""

from .by_name import NamedRoot
from .by_path import PathRoot
from .cold_root import ColdRoot
from .log_place import LogPlace
from .parse import cold_root

__all__ = ["ColdRoot", "LogPlace", "NamedRoot", "PathRoot", "cold_root"]
