"""Tasks on Spark, through the DataFrame API alone (Connect has no other)."""

from __future__ import annotations

import logging
import pickle
import threading
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, wait
from typing import TYPE_CHECKING, Any, TypeVar

import pyarrow as pa

from ..errors import LakelogError
from .engine import SPARK, Choice, chosen

if TYPE_CHECKING:
    from pyspark import SparkContext
    from pyspark.sql import DataFrame, Row, SparkSession

import gc

logger = logging.getLogger(__name__)

CORES_UNKNOWN = 16  # Spark Connect does not tell

_CANCELLED_AGAIN_S = 0.5

T = TypeVar("T")
R = TypeVar("R")


class SparkEngine:
    """Runs a function over tasks in one Spark job; the ``Engine`` of clusters and laptops.

    A task's exception comes back as its outcome. So Spark does not rerun a task that raised (only
    one whose executor was lost), the error arrives here as it was, and the other tasks run to their
    end.

    Args:
        session: a Spark or Spark Connect session; lakelog must be installed on its executors. Or
            what opens one, which is called once there is something to run.
    """

    def __init__(self, session: SparkSession | Callable[[], SparkSession]) -> None:
        self._given = session
        self._opened: SparkSession | None = None
        self._opening = threading.Lock()
        self._running: dict[str, Future[list[Row]]] = {}  # by the job's tag

    @property
    def _session(self) -> SparkSession:
        with self._opening:
            if self._opened is None:
                self._opened = self._given() if callable(self._given) else self._given
            return self._opened

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """One result for each task, in their order; of failed ones the first error, at the end.

        Runs on: driver; ``function`` on executors. Without tasks there is no job. It starts when
        the first result is asked for. If the wait for it is interrupted, the job is cancelled.

        Raises:
            MissingExtraError, SparkUnavailableError: there is no session, and none can be opened.
        """
        if tasks:
            chosen(_ASKED)
        return self.run(function, tasks)

    def run(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        """As `map`, for who has said already why it runs on Spark."""
        if not tasks:
            return iter(())
        _ = self._session  # where there can be none, it is said at once
        return self._results(function, tasks)

    def _results(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[R]:
        outcomes = self._outcomes(function, tasks)
        results = [pickle.loads(outcomes[number]) for number in range(len(tasks))]
        yield from (result for result in results if not isinstance(result, Failure))
        for result in results:
            if isinstance(result, Failure):
                result.throw()

    def _outcomes(self, function: Callable[[T], R], tasks: Sequence[T]) -> dict[int, bytes]:
        from pyspark import cloudpickle

        # Pickled here, so that what cannot be pickled fails here, with its own message.
        count = len(tasks)
        # One Spark task per core: each costs 50 ms or more before it does anything, a tenth of what
        # archiving takes. Tasks are dealt out, so that the largest, which come first, are spread.
        spark_tasks = min(count, cores(self._session))
        dealt = [
            number for first in range(spark_tasks) for number in range(count)[first::spark_tasks]
        ]
        run = _Run(
            cloudpickle.dumps(function),
            [(number, cloudpickle.dumps(tasks[number])) for number in dealt],
        )
        numbers = self._session.range(0, count, 1, spark_tasks)
        answers = numbers.mapInArrow(run, "number long, outcome binary")
        rows = self.collect(answers, f"lakelog: {_name(function)} × {count}")
        return {row["number"]: bytes(row["outcome"]) for row in rows}

    def collect(self, answers: DataFrame, description: str) -> list[Row]:
        """The rows of a frame; if waiting for them is interrupted, the job is cancelled."""
        # Not toLocalIterator: it would run one Spark partition after the other.
        # In a thread, since an exception raised into a wait for the JVM (Ctrl-C, a signal handler)
        # breaks the connection to it. The thread inherits the job group, so that a notebook's own
        # cancel reaches the job; tag and description end with it.
        from pyspark import inheritable_thread_target

        tag = f"lakelog-{uuid.uuid4()}"
        done: Future[list[Row]] = Future()
        context = spark_context(self._session)

        def collect() -> None:
            try:
                if context is None:
                    self._session.addTag(tag)
                else:
                    # The session's own tags can be interrupted only by the thread that set them.
                    context.addJobTag(tag)
                    context.setJobDescription(description)
                done.set_result(answers.collect())
            except BaseException as error:
                done.set_exception(error)

        target = inheritable_thread_target(self._session)(collect)
        self._running[tag] = done
        try:
            _start(target, description, done)
            return done.result()
        except BaseException:
            self._cancel(tag, done)
            raise
        finally:
            del self._running[tag]

    def cancel(self) -> None:
        """Cancels the jobs that run now, whichever thread waits for them; it gets an error."""
        for tag, done in list(self._running.items()):
            self._cancel(tag, done)

    def _cancel(self, tag: str, done: Future[list[Row]]) -> None:
        if done.done():
            return
        self._cancel_running(tag)

        def cancel_what_begins() -> None:
            while not wait([done], _CANCELLED_AGAIN_S).done:
                self._cancel_running(tag)

        # Spark forgets what was cancelled before it began, as while it was planned, and may not
        # answer just now.
        threading.Thread(target=cancel_what_begins, name="lakelog-cancelled", daemon=True).start()

    def _cancel_running(self, tag: str) -> None:
        try:
            context = spark_context(self._session)
            if context is None:
                self._session.interruptTag(tag)
            else:
                context.cancelJobsWithTag(tag)
        except Exception as error:
            logger.info("Spark did not take that a job is cancelled: %s", error)


def _start(target: Callable[[], None], name: str, done: Future[list[Row]]) -> None:
    try:
        threading.Thread(target=target, name=name, daemon=True).start()
    except RuntimeError as error:  # there can be no more threads
        done.set_exception(error)


_ASKED = Choice(SPARK, "as asked")


def cores(session: SparkSession) -> int:
    """How many tasks run at once, as far as the session tells."""
    context = spark_context(session)
    return CORES_UNKNOWN if context is None else max(1, context.defaultParallelism)


def spark_context(session: SparkSession) -> SparkContext | None:
    """The session's context; Spark Connect and serverless have none."""
    try:
        return session.sparkContext
    except Exception:
        return None


def _name(function: Callable[[Any], Any]) -> str:
    inner = getattr(function, "func", function)  # of a functools.partial
    return getattr(inner, "__name__", type(inner).__name__)


class _Run:
    """What every Spark task runs: takes rows of task numbers, and gives pickled outcomes.

    Runs on: executor.
    """

    def __init__(self, function: bytes, tasks: list[tuple[int, bytes]]) -> None:
        self.function = function
        self.tasks = tasks

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        spare_imports()
        dealt = [self.tasks[place] for batch in batches for place in batch.column(0).to_pylist()]
        for number, task in dealt:
            outcome = pa.array([self._outcome(task)])
            yield pa.RecordBatch.from_arrays(
                [pa.array([number], pa.int64()), outcome], ["number", "outcome"]
            )

    def _outcome(self, task: bytes) -> bytes:
        return outcome_of(lambda: pickle.loads(self.function)(pickle.loads(task)))


def outcome_of(function: Callable[[], Any]) -> bytes:
    """What a function returns, or the `Failure` it ends in, pickled."""
    from pyspark import cloudpickle

    try:
        return bytes(cloudpickle.dumps(function()))
    except Exception as error:
        return bytes(cloudpickle.dumps(Failure.of(error)))


class Failure:
    """An exception on its way from an executor to the driver."""

    def __init__(self, error: Exception, where: str) -> None:
        self.error = error
        self.where = where

    @classmethod
    def of(cls, error: Exception) -> Failure:
        where = "".join(traceback.format_exception(type(error), error, error.__traceback__))
        from pyspark import cloudpickle

        try:
            pickle.loads(cloudpickle.dumps(error))
        except Exception:  # the error cannot be pickled, but its text can
            error = LakelogError(f"a task failed with {type(error).__name__}: {error}")
        return cls(error, where)

    def throw(self) -> Any:
        if isinstance(self.error, LakelogError) and type(self.error) is not LakelogError:
            raise self.error  # its message says enough
        raise self.error from TaskTraceback(self.where)


class TaskTraceback(Exception):
    """The cause of an unexpected error: where on the executor it was raised."""

    def __str__(self) -> str:
        return f"\n{self.args[0]}"


#: The first tasks that need modules import them; that need not be the very first task.
_IMPORTING_TASKS = 4

_tasks = 0


def spare_imports() -> None:
    """Keep imported modules out of the garbage collection that a worker does after each task.

    Before it takes the next task, Spark's worker looks for garbage among all objects, nearly all of
    which are the code and types of imported packages. That takes 130 ms of a core per task, as much
    as a small task (measured with Arrow, pandas and lakelog). Call it where a task begins.

    Runs on: executor.
    """
    global _tasks
    if _tasks < _IMPORTING_TASKS:
        _tasks += 1
        gc.freeze()
