"""What an executor does, in a process of its own: ``read_ranges_process.py FOLDER``.

The folder has a pickled ``reader`` and its pickled ``ranges``; what they hold is printed as JSON.
"""

from __future__ import annotations

import json
import pickle
import sys
from pathlib import Path


def main(folder: str) -> None:
    reader = pickle.loads((Path(folder) / "reader").read_bytes())
    ranges = pickle.loads((Path(folder) / "ranges").read_bytes())
    rows = [row for one in ranges for batch in reader.read(one) for row in batch.to_pylist()]
    print(json.dumps([[row["partition"], row["offset"], row["value"].decode()] for row in rows]))


if __name__ == "__main__":
    main(sys.argv[1])
