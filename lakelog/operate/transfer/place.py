"""Where an export is: a folder, an object store's URL, or a ``.tar`` file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ...base.local_path import local_path
from ...cold.store.storage import Storage
from ...errors import InvalidArgumentError
from .archive import ArchiveReader, ArchiveWriter
from .folder import FolderReader, FolderWriter

ARCHIVE_ENDING = ".tar"


def open_writer(
    to: str | Path, options: Mapping[str, str] | None, root: str | None
) -> FolderWriter | ArchiveWriter:
    """What writes an export.

    Args:
        to: a folder, or a file whose name ends in ``.tar``.
        options: open an object store.
        root: the cold root of the log, in which no export may lie.

    Raises:
        InvalidArgumentError: not a place, or one in the cold root, or with something else in it.
        ColdTierError: it cannot be written.
    """
    archive = _archive(to)
    place = str(archive) if archive is not None else _folder(to, options).root
    if root is not None and f"{place}/".startswith(f"{root.rstrip('/')}/"):
        raise InvalidArgumentError(
            f"{place} lies in the cold root {root}, where tables would be met twice: export to "
            "another place",
            path=place,
        )
    return FolderWriter(_folder(to, options)) if archive is None else ArchiveWriter(archive)


def open_reader(
    source: str | Path, options: Mapping[str, str] | None
) -> FolderReader | ArchiveReader:
    """What reads an export.

    Args:
        source, options: as for `open_writer`.

    Raises:
        InvalidArgumentError: not a place.
        MissingFileError: nothing is there.
        CorruptExportError: see `ArchiveReader`.
    """
    archive = _archive(source)
    if archive is not None:
        return ArchiveReader(archive)
    return FolderReader(_folder(source, options))


def fitting_options(place: str | Path, root: Storage) -> Mapping[str, str] | None:
    """The options of the cold root, where an export lies in a store of the same kind."""
    scheme = str(place).partition("://")[0]
    return dict(root.store_options) if scheme in root.object_stores else None


def _folder(place: str | Path, options: Mapping[str, str] | None) -> Storage:
    storage = Storage(str(place))
    return storage if storage.is_local else Storage(str(place), options)


def _archive(place: str | Path) -> Path | None:
    """The file; None if it is no archive."""
    text = str(place)
    if "://" in text or not text.endswith(ARCHIVE_ENDING):
        return None
    return Path(local_path(text, "export"))
