from __future__ import annotations

from pathlib import Path

from .history import Outcome, Partition, Seen, consumptions_of, positions, sends_of, tasks_of
from .journal import Journal, read_journal


def lines(file: Path) -> list[list[object]]:
    return [[kind, *fields] for kind, _, *fields in read_journal(file)]


def test_a_torn_line_takes_nothing_with_it(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    Journal(file).write("seen", 1)
    with file.open("a") as torn:
        torn.write('["seen",17.3,')
    Journal(file).write("seen", 2)
    assert lines(file) == [["seen", 1], ["seen", 2]]


def test_nobody_wrote_a_journal_that_is_not_there(tmp_path: Path) -> None:
    assert lines(tmp_path / "journal") == []


def test_sends_without_an_answer_are_unknown(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "p")
    journal.write("session", 4, True)
    journal.write("intent", "plain", [[0, "a"], [1, None], [2, None], [3, None]])
    journal.write("ack", 0, 1, 17)
    journal.write("refused", [1], "why")
    journal.write("unknown", [2], "why")
    journal.write("session", 9, False)
    journal.write("intent", "plain", [[0, None]])
    journal.write("ack", 0, 0, 18)
    sends = sends_of("p", read_journal(tmp_path / "p"))
    assert [(send.payload, send.outcome, send.is_durable) for send in sends] == [
        ("p.4.0", Outcome.ACKED, True),
        ("p.4.1", Outcome.REFUSED, True),
        ("p.4.2", Outcome.UNKNOWN, True),
        ("p.4.3", Outcome.UNKNOWN, True),
        ("p.9.0", Outcome.ACKED, False),
    ]
    assert (sends[0].partition, sends[0].offset, sends[0].key) == (1, 17, "a")
    assert (sends[4].session, sends[4].sequence, sends[4].offset) == ("p.9", 0, 18)


def test_rows_of_a_task_are_appended_once_it_was_told_so(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "s")
    journal.write("task", "plain", 0, ["a", None])
    journal.write("confirmed", 17.5, 0, 1)
    journal.write("task", "plain", 0, ["a", None])  # tried again
    journal.write("task", "plain", 2, ["b"])
    sends = tasks_of("s", read_journal(tmp_path / "s"))
    assert [(send.payload, send.key, send.outcome) for send in sends] == [
        ("s.0.0", "a", Outcome.APPENDED),
        ("s.0.1", None, Outcome.UNKNOWN),
        ("s.0.2", "b", Outcome.UNKNOWN),
    ]
    assert all(send.is_repeated for send in sends)
    assert sends[0].asked_s == 17.5
    assert 0 < sends[0].sent_s <= sends[0].acked_s


def test_a_consumer_goes_on_where_its_journal_ends(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "c")
    journal.write("begin", "id", 0, 5)
    journal.write("begin", "id", 1, 7)
    journal.write("seen", "id", 0, [5, 6], ["a", "b"])
    journal.write("seen", "id", 0, [9], ["c"])
    consumed = consumptions_of("c", read_journal(tmp_path / "c"))
    assert positions(consumed) == {Partition("id", 0): 10, Partition("id", 1): 7}
    assert consumed[0].seen == [Seen(5, "a"), Seen(6, "b"), Seen(9, "c")]
