"""What an answer means for a call."""

import pytest

from lakelog.errors import (
    HotTierFullError,
    HotTierUnavailableError,
    InvalidTimestampError,
    NotEnoughReplicasAfterAppendError,
    OutOfOrderSequenceError,
    ProducerFencedError,
    RecoveryNeededError,
    UnknownProducerError,
    UnknownTopicIdError,
    UnknownTopicOrPartitionError,
)
from lakelog.hot import AppendResult
from lakelog.ingest.answers import Verdict, verdict

WRITTEN = AppendResult(0, -1, 0, "run", False)


FEW = NotEnoughReplicasAfterAppendError("few", result=None, replicas=0)
GAP = OutOfOrderSequenceError("gap", expected=3)


def unanswered(*, sent: bool) -> HotTierUnavailableError:
    return HotTierUnavailableError("away", sent=sent, run_id="run")


@pytest.mark.parametrize(
    ("answer", "fresh_first", "fresh_behind", "kept_first"),
    [
        (WRITTEN, Verdict.WRITTEN, Verdict.WRITTEN, Verdict.WRITTEN),
        (unanswered(sent=True), Verdict.WAIT, Verdict.WAIT, Verdict.WAIT),
        (unanswered(sent=False), Verdict.WAIT, Verdict.WAIT, Verdict.WAIT),
        (HotTierFullError("full"), Verdict.WAIT, Verdict.WAIT, Verdict.WAIT),
        (FEW, Verdict.WAIT, Verdict.WAIT, Verdict.WAIT),
        (GAP, Verdict.RENUMBER, Verdict.RESEND, Verdict.UNKNOWN),
        (UnknownProducerError("who?"), Verdict.RENUMBER, Verdict.RENUMBER, Verdict.UNKNOWN),
        (ProducerFencedError("old"), Verdict.REFUSED, Verdict.REFUSED, Verdict.UNKNOWN),
        (InvalidTimestampError("late"), Verdict.REFUSED, Verdict.REFUSED, Verdict.UNKNOWN),
        (RecoveryNeededError("new run"), Verdict.RECOVER, Verdict.RECOVER, Verdict.RECOVER),
        (UnknownTopicOrPartitionError("no"), Verdict.REPAIR, Verdict.REPAIR, Verdict.REPAIR),
        (UnknownTopicIdError("no"), Verdict.TOPIC_GONE, Verdict.TOPIC_GONE, Verdict.TOPIC_GONE),
    ],
)
def test_what_an_answer_means(answer, fresh_first, fresh_behind, kept_first):
    assert [
        verdict(answer, may_be_written=False, is_first=True),
        verdict(answer, may_be_written=False, is_first=False),
        verdict(answer, may_be_written=True, is_first=True),
    ] == [fresh_first, fresh_behind, kept_first]


def test_a_call_out_of_order_behind_an_unsettled_one_is_sent_again_even_if_it_may_be_written():
    answer = GAP
    assert verdict(answer, may_be_written=True, is_first=False) is Verdict.RESEND
