"""Runs a notebook as a job in a process with a Spark of its own, until a failpoint ends it."""

from __future__ import annotations

import json
import sys

from notebook_run import run_job

from lakelog.spark import session

if __name__ == "__main__":
    wanted = json.loads(sys.argv[2])
    session("lakelog-killed", cores=2, object_stores=["s3"], conf=wanted["conf"])
    run_job(sys.argv[1], **wanted["widgets"])
