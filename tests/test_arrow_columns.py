"""Columns that lakelog writes down itself are those that Arrow makes of the same values."""

from __future__ import annotations

import subprocess
import sys


def test_an_index_and_metrics_are_made_without_pandas() -> None:
    made = (
        "import sys\n"
        "from lakelog.cold.added_file import AddedFile, index_of\n"
        "from lakelog.cold.segment import file_name\n"
        "from lakelog.cold import contradictions\n"
        "from lakelog.cold.registers import ArchivedEnd\n"
        "from lakelog.base.metrics import Measured\n"
        "from lakelog.operate.metrics.of_log import LOG_END, UP\n"
        "from lakelog.operate.metrics.table import metrics_table\n"
        "path = 'partition=0/segment=0/' + file_name('archive', 0, 2, '0' * 32)\n"
        "index = index_of([AddedFile(path, 0, 0, 1, 1, 2, 0, 1)])\n"
        "assert len(index.columns) == 1\n"
        "contradictions.check('t', index, {ArchivedEnd(0): 2})\n"
        "assert index.stand_ins(0) == [] and index.ends == {0: 2}\n"
        "found = [Measured(LOG_END, [(('t', '0'), 1)]), Measured(UP, [((), 1)])]\n"
        "assert len(metrics_table(found)) == 2\n"
        "assert 'pandas' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", made], check=True)
