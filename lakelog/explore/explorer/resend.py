"""A record, as it is or edited, to be produced again: after a second click that says where to."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct

from ...errors import InvalidArgumentError
from ...values.record import Record
from .controls import Controls, hide, unhide
from .rows import note_html


class Resend(Struct, frozen=True):
    """What is to be sent, and where to: a new record, with the time of its sending."""

    topic: str
    key: bytes | None
    value: bytes | None
    headers: tuple[tuple[str, bytes | None], ...]


class ResendForm:
    """Offers a record to be edited and sent.

    What was not touched stays byte for byte; null stays null.
    """

    def __init__(self, ui: Controls) -> None:
        self._ui = ui
        self._record: Record | None = None  # what is offered
        self._confirmed: Resend | None = None  # what the next click sends

    def offer(self, record: Record, topics: Sequence[str], topic: str) -> None:
        """Fills the boxes."""
        ui, self._record = self._ui, record
        ui.sent.value = ""
        ui.send_topic.options = [*topics]
        ui.send_topic.value = topic if topic in topics else None  # it may be gone by now
        for box, data in ((ui.send_key, record.key), (ui.send_value, record.value)):
            text = _editable(data)
            box.value = text or ""
            box.disabled = text is None
            box.placeholder = "" if text is not None else "null" if data is None else "bytes"
        self.ask_again()
        unhide(ui.sending)

    def clicked(self) -> Resend | None:
        """The record as it is edited by now, at the second click; the first asks."""
        ui, record = self._ui, self._record
        if record is None:
            return None
        if ui.send_topic.value is None:
            raise InvalidArgumentError("choose the topic to send the record to")
        key, value = (
            _replaced(data, box.value)
            for data, box in ((record.key, ui.send_key), (record.value, ui.send_value))
        )
        edited = Resend(ui.send_topic.value, key, value, record.headers)
        if edited == self._confirmed:
            self.ask_again()
            return edited
        self._confirmed = edited
        ui.send.description = f"Yes, append it to {edited.topic!r}"
        ui.send.button_style = "danger"
        return None

    def ask_again(self) -> None:
        """Something was edited, or sent."""
        self._confirmed = None
        self._ui.send.description, self._ui.send.button_style = "Send", ""

    def withdraw(self, said: str = "") -> None:
        """Offers it no more."""
        self._record = None
        self.ask_again()
        hide(self._ui.sending)
        self._ui.sent.value = note_html(said) if said else ""


def _editable(data: bytes | None) -> str | None:
    """The text that can be edited; None where there is none, or bytes that are no text."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return None


def _replaced(data: bytes | None, text: str) -> bytes | None:
    before = _editable(data)
    return data if before is None or before == text else text.encode()
