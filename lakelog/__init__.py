"""lakelog: a Kafka-shaped log on Redis Streams and Delta Lake, with no broker to run.

::

   ingest             hot                    archive (Spark)        cold
   Producer ─────▶  Redis Stream per   ─▶  plan ▸ copy ▸     ─▶  one Delta table per topic
                    topic-partition        commit ▸ trim          partition= / segment=
                         │                                             │
                         └──────────▶  read: one log, two tiers  ◀─────┘
                                       seek ▸ fetch ▸ consume

Start with `Lakelog.embedded` (a directory) or `Lakelog.connect` (a Redis, a cold root, or both).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .base.lazy_names import lazy_names
from .version import __version__ as __version__

if TYPE_CHECKING:
    from .errors import LakelogError
    from .groups.share.share_values import AcknowledgeType
    from .ingest.producer import Producer
    from .lakelog import ColdLog, Lakelog
    from .read.answers import frame
    from .read.consumer import Consumer
    from .read.share_consumer import ShareConsumer
    from .read.subscription import ConsumerRebalanceListener
    from .read.topic_log import TopicLog, UnifiedLog
    from .values.config import TopicConfig
    from .values.offsets import (
        Ago,
        AtOffset,
        AtTimestamp,
        Earliest,
        EarliestLocal,
        EarliestPendingUpload,
        Latest,
        LatestTiered,
        LogOffsets,
        MaxTimestamp,
    )
    from .values.record import (
        PRODUCED,
        RECORDS,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        Record,
        RecordMetadata,
        TimestampType,
    )
    from .values.topic import Topic
    from .values.topic_partition import TopicPartition

#: Where each public name lives. They are imported when first used: `import lakelog` stays quick.
_HOMES = {
    "AcknowledgeType": ".groups.share.share_values",
    "Ago": ".values.offsets",
    "AtOffset": ".values.offsets",
    "AtTimestamp": ".values.offsets",
    "ColdLog": ".lakelog",
    "Consumer": ".read.consumer",
    "ConsumerRebalanceListener": ".read.subscription",
    "Earliest": ".values.offsets",
    "EarliestLocal": ".values.offsets",
    "EarliestPendingUpload": ".values.offsets",
    "Lakelog": ".lakelog",
    "LakelogError": ".errors",
    "Latest": ".values.offsets",
    "LatestTiered": ".values.offsets",
    "LogOffsets": ".values.offsets",
    "MaxTimestamp": ".values.offsets",
    "OffsetAndMetadata": ".values.record",
    "OffsetAndTimestamp": ".values.record",
    "PRODUCED": ".values.record",
    "Producer": ".ingest.producer",
    "RECORDS": ".values.record",
    "Record": ".values.record",
    "RecordMetadata": ".values.record",
    "ShareConsumer": ".read.share_consumer",
    "TimestampType": ".values.record",
    "Topic": ".values.topic",
    "TopicConfig": ".values.config",
    "TopicLog": ".read.topic_log",
    "TopicPartition": ".values.topic_partition",
    "UnifiedLog": ".read.topic_log",
    "frame": ".read.answers",
}

__all__ = [
    "PRODUCED",
    "RECORDS",
    "AcknowledgeType",
    "Ago",
    "AtOffset",
    "AtTimestamp",
    "ColdLog",
    "Consumer",
    "ConsumerRebalanceListener",
    "Earliest",
    "EarliestLocal",
    "EarliestPendingUpload",
    "Lakelog",
    "LakelogError",
    "Latest",
    "LatestTiered",
    "LogOffsets",
    "MaxTimestamp",
    "OffsetAndMetadata",
    "OffsetAndTimestamp",
    "Producer",
    "Record",
    "RecordMetadata",
    "ShareConsumer",
    "TimestampType",
    "Topic",
    "TopicConfig",
    "TopicLog",
    "TopicPartition",
    "UnifiedLog",
    "frame",
]


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
