"""The explorer as it stands on a page: what a reader's hands and eyes do with it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

from playwright.sync_api import expect

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page


class ExplorerPage:
    """One explorer on a page; parts are found by the classes that its widgets carry."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.root = page.locator(".lakelog-explorer").first
        self.table = self.part("table")
        self.rows = self.table.locator("tr[data-offset]")
        self.expression = self.part("expression")
        self.record = self.part("record")
        self.error = self.part("error")
        self.opened_offset = self.record.locator(".ll-fields td").first

    def part(self, name: str) -> Locator:
        return self.root.locator(f".lakelog-{name}").first

    def row(self, offset: int) -> Locator:
        return self.table.locator(f'tr[data-offset="{offset}"]')

    # -- hands -----------------------------------------------------------------------------------

    def choose(self, name: str, label: str) -> None:
        self.part(name).locator("select").select_option(label)

    def press(self, name: str) -> None:
        self.part(name).click()

    def type(self, name: str, text: str) -> None:
        """Into an emptied box, key by key, then Enter."""
        box = self.part(name).locator("input")
        box.click()
        box.press("Control+a")
        box.press_sequentially(text)
        box.press("Enter")

    def open(self, offset: int) -> None:
        """A click on a row; the record beside the table is that one's afterwards."""
        self.row(offset).click()
        expect(self.opened_offset).to_have_text(str(offset))

    # -- eyes ------------------------------------------------------------------------------------
    # What a click asks for is shown later: a test waits for it by `expect`, and reads a text or a
    # number itself only after it has waited for something that is shown no earlier.

    def column(self, name: str) -> Locator:
        """A column's cells, a cell a row."""
        return self.rows.locator(f"td.ll-c-{name}")

    def of_tier(self, tier: str) -> Locator:
        return self.table.locator(f'tr[data-offset][data-tier="{tier}"]')

    def expect_offsets(self, offsets: Iterable[int]) -> None:
        """Waits until the rows are these."""
        expect(self.column("offset")).to_have_text([str(offset) for offset in offsets])

    def first_offset(self) -> int:
        return int(self.column("offset").first.inner_text())

    def offset_of(self, key: str) -> int:
        """The offset of the row that has a key."""
        row = self.rows.filter(
            has=self.page.locator("td.ll-c-key", has_text=re.compile(f"^{key}$"))
        )
        return int(row.locator("td.ll-c-offset").inner_text())
