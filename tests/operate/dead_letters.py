"""A share group that makes dead letters of all it gets."""

from __future__ import annotations

from lakelog import AcknowledgeType, Lakelog


def reject_all(lake: Lakelog, topic: str, dead_letters: str) -> None:
    """Every record that is there becomes a dead letter, by the share group ``shippers``."""
    with lake.share_consumer(
        topic,
        group_id="shippers",
        share_auto_offset_reset="earliest",
        share_acknowledgement_mode="explicit",
        errors_deadletterqueue_topic_name=dead_letters,
    ) as shippers:
        for records in shippers.poll(1000).values():
            for record in records:
                shippers.acknowledge(record, AcknowledgeType.REJECT)
        shippers.poll(1000)  # writes them
