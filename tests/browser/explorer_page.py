"""The explorer as it stands on a page: what a reader's hands and eyes do with it."""

from __future__ import annotations

from typing import TYPE_CHECKING

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
        self.notes = self.part("notes")
        self.record = self.part("record")
        self.error = self.part("error")

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

    # -- eyes ------------------------------------------------------------------------------------

    def offsets(self) -> list[int]:
        return [
            int(text) for text in self.rows.evaluate_all("rows => rows.map(r => r.dataset.offset)")
        ]

    def tiers(self) -> list[str]:
        return self.rows.evaluate_all("rows => rows.map(r => r.dataset.tier)")

    def cells(self, column: str) -> list[str]:
        """What the rows say in a column, by its heading."""
        headings = self.table.locator("th").all_inner_texts()
        place = headings.index(column) + 1
        return self.rows.locator(f"td:nth-child({place})").all_inner_texts()
