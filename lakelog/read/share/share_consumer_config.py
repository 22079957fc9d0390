"""A share consumer's settings, by Kafka's names in snake case."""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from ...errors import InvalidConfigError
from ...groups.group_ids import check_group_id
from ...groups.share.settings import ShareGroupSettings
from ...values.arguments import settle_numbers
from ...values.config import check_names
from ..consumer_config import check_count, check_deserializers, check_flag, check_max_age
from ..deserializers import Deserializer
from ..policy import OffsetReset

MODES = ("implicit", "explicit")


class ShareConsumerConfig(Struct, frozen=True, kw_only=True):
    """Checked when made; `of` also says which names are legal.

    All consumers of a group should have the same settings but for ``max_poll_records``, the
    deserializers and ``share_acknowledgement_mode``. They are not kept in Redis.

    Raises:
        InvalidConfigError: a value that is not legal.
    """

    group_id: str
    # Whose records it takes.

    share_acknowledgement_mode: str = "implicit"
    # "implicit": the next poll or commit accepts all that the last poll gave. "explicit": each
    # record has to be acknowledged before the next poll. Kafka: implicit.

    share_auto_offset_reset: str = "latest"
    # Where the group begins in a partition in which it never was: "earliest", "latest" or
    # "by_duration:PT10M". Kafka: latest.

    share_record_lock_duration_ms: int = 30_000
    share_delivery_count_limit: int = 5
    share_partition_max_record_locks: int = 2_000
    errors_deadletterqueue_topic_name: str | None = None
    # See `ShareGroupSettings`.

    max_poll_records: int = 500
    # The most that one poll returns; ≥ 1. Kafka: 500.

    key_deserializer: Deserializer | None = None
    value_deserializer: Deserializer | None = None
    # As a consumer's. A record that cannot be read is released, so it ends where the limit says.

    stored_values: bool = False
    # As a consumer's. Dead letters have the stored bytes for their values, then.

    metadata_max_age_ms: int = 5_000
    # How often it looks for new topics and partitions; ≥ 1. Kafka: 300,000.

    def __post_init__(self) -> None:
        settle_numbers(self)
        check_group_id(self.group_id)
        if self.share_acknowledgement_mode not in MODES:
            raise InvalidConfigError(
                f"share_acknowledgement_mode={self.share_acknowledgement_mode!r} is not legal: it "
                "takes 'implicit' or 'explicit'",
                name="share_acknowledgement_mode",
                value=self.share_acknowledgement_mode,
            )
        if self.reset.position is None:
            raise InvalidConfigError(
                "share_auto_offset_reset='none' is not legal: a share group begins somewhere; it "
                "takes 'earliest', 'latest' or 'by_duration:PT…'",
                name="share_auto_offset_reset",
                value="none",
            )
        _ = self.group_settings
        check_count("max_poll_records", self.max_poll_records)
        check_max_age(self.metadata_max_age_ms)
        check_flag("stored_values", self.stored_values)
        check_deserializers(self.key_deserializer, self.value_deserializer)

    @property
    def is_explicit(self) -> bool:
        return self.share_acknowledgement_mode == "explicit"

    @property
    def reset(self) -> OffsetReset:
        try:
            return OffsetReset.parse(self.share_auto_offset_reset)
        except InvalidConfigError as error:
            raise InvalidConfigError(
                f"share_{error.message}",
                name="share_auto_offset_reset",
                value=self.share_auto_offset_reset,
            ) from None

    @property
    def group_settings(self) -> ShareGroupSettings:
        """What its group goes by."""
        return ShareGroupSettings(
            record_lock_duration_ms=self.share_record_lock_duration_ms,
            delivery_count_limit=self.share_delivery_count_limit,
            partition_max_record_locks=self.share_partition_max_record_locks,
            dead_letter_topic=self.errors_deadletterqueue_topic_name,
        )

    @classmethod
    def of(cls, **settings: Any) -> ShareConsumerConfig:
        """From keyword arguments.

        Raises:
            InvalidConfigError: there is no such setting, or a value is not legal.
        """
        check_names(cls, "share consumer", settings)
        if "group_id" not in settings:
            raise InvalidConfigError(
                "group_id is missing: consumers share the records of a group; name it",
                name="group_id",
            )
        return cls(**settings)
