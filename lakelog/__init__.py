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

from .lazy_names import lazy_names

if TYPE_CHECKING:
    from .cold_log import ColdLog
    from .config import TopicConfig
    from .errors import LakelogError
    from .groups.share.share_values import AcknowledgeType
    from .ingest.producer import Producer
    from .lakelog import Lakelog
    from .offsets import (
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
    from .read.consumer import Consumer
    from .read.share.share_consumer import ShareConsumer
    from .read.subscription import ConsumerRebalanceListener
    from .read.topic_log import TopicLog
    from .read.unified_log import UnifiedLog
    from .record import (
        PRODUCED,
        RECORDS,
        OffsetAndMetadata,
        OffsetAndTimestamp,
        Record,
        RecordMetadata,
        TimestampType,
        TopicPartition,
    )
    from .topic import Topic

__version__ = "0.1.0"

#: Where each public name lives. They are imported when first used: `import lakelog` stays quick.
_HOMES = {
    "AcknowledgeType": ".groups.share.share_values",
    "Ago": ".offsets",
    "AtOffset": ".offsets",
    "AtTimestamp": ".offsets",
    "ColdLog": ".cold_log",
    "Consumer": ".read.consumer",
    "ConsumerRebalanceListener": ".read.subscription",
    "Earliest": ".offsets",
    "EarliestLocal": ".offsets",
    "EarliestPendingUpload": ".offsets",
    "Lakelog": ".lakelog",
    "LakelogError": ".errors",
    "Latest": ".offsets",
    "LatestTiered": ".offsets",
    "LogOffsets": ".offsets",
    "MaxTimestamp": ".offsets",
    "OffsetAndMetadata": ".record",
    "OffsetAndTimestamp": ".record",
    "PRODUCED": ".record",
    "Producer": ".ingest.producer",
    "RECORDS": ".record",
    "Record": ".record",
    "RecordMetadata": ".record",
    "ShareConsumer": ".read.share.share_consumer",
    "TimestampType": ".record",
    "Topic": ".topic",
    "TopicConfig": ".config",
    "TopicLog": ".read.topic_log",
    "TopicPartition": ".record",
    "UnifiedLog": ".read.unified_log",
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
]


__getattr__ = lazy_names(__name__, _HOMES)


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
