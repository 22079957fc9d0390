"""A copy of the log in a tenant, by export and import, as a rule of the state machine."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path

from lakelog.errors import MissingExtraError, UnknownTenantError
from lakelog.lakelog import Lakelog
from lakelog.testing.model import require, require_same
from lakelog.values.offsets import LogOffsets

from .harness import TOPIC, LogHarness, any_new, partitions

try:
    from hypothesis import strategies as st
    from hypothesis.stateful import precondition, rule
except ImportError as error:
    raise MissingExtraError(
        "lakelog.testing's strategies and machine need hypothesis: pip install hypothesis"
    ) from error

TENANT = "team"


class TransferRules(LogHarness):
    """The copy has what the log has, under the same name and offsets, and a life of its own."""

    @precondition(any_new)
    @rule(as_file=st.booleans(), partition=partitions, value=st.binary(max_size=8))
    def a_copy_comes_and_goes(self, as_file: bool, partition: int, value: bytes) -> None:
        """Exported, imported by a tenant, read, appended to there, archived, deleted."""
        if any(model.run_id != self.run_id for model in self.models):
            return  # a log that waits for its recovery has no end to export
        exported = Path(self._cold_root).parent / f"export-{self.news}{'.tar' * as_file}"
        try:
            with self._lakelog() as lake:
                before = self._offsets(lake)
                lake.export(exported, TOPIC)
                lake.tenants.create(TENANT)
                with self._lakelog(TENANT) as copy:
                    copy.import_topics(exported)
                    self._check_copy(copy)
                    self._go_on(copy, partition, value)
                require(self._offsets(lake) == before, "a copy changed the log it is of")
                lake.tenants.delete(TENANT, topics=True, purge=True)
                try:
                    lake.tenants.get(TENANT)
                except UnknownTenantError:
                    return
                require(False, "a tenant that was deleted is there")
        finally:
            if exported.is_dir():
                shutil.rmtree(exported)
            exported.unlink(missing_ok=True)

    def _check_copy(self, copy: Lakelog) -> None:
        offsets = self._offsets(copy)
        log = copy.log(TOPIC)
        for model in self.models:
            number = model.topic_partition.partition
            # What compaction removed is not in a copy, though the log reads it while Redis has it.
            archived = model.cold() if self.topic.config.tiered else []
            others = model.read(model.archive_start if self.topic.config.tiered else 0)
            require_same(log.read(number).records(), [*archived, *others])
            found = offsets[number]
            require(
                (found.log_start, found.log_end) == (model.log_start, model.log_end),
                f"the copy of partition {number} is {found}, not "
                f"[{model.log_start}, {model.log_end})",
            )

    def _go_on(self, copy: Lakelog, partition: int, value: bytes) -> None:
        """What is appended to the copy comes after all of it, and is read from both tiers."""
        end = self.models[partition].log_end
        with copy.producer() as producer:
            sent = producer.send(TOPIC, value, key=b"copied", partition=partition)
        offset = sent.result().offset
        require(offset >= end, f"the copy goes on at {offset}, below its end, {end}")
        copy.archive()
        tail = [(one.key, one.value) for one in copy.log(TOPIC).read(partition, offset).records()]
        require(tail == [(b"copied", value)], f"appended at {offset} of the copy: {tail}")

    def _offsets(self, lake: Lakelog) -> Mapping[int, LogOffsets]:
        return lake.log(TOPIC).offsets()

    def _lakelog(self, tenant: str | None = None) -> Lakelog:
        return Lakelog.connect(
            self.server.url, self._cold_root, tenant=tenant, engine="inline", clock=self.clock
        )
