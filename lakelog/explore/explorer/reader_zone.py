"""The zone of the reader's clocks, as the page tells it where scripts in HTML are run."""

from __future__ import annotations

from html import escape

#: What browsers call UTC.
UTC_NAMES = frozenset({"UTC", "GMT", "Etc/UTC", "Etc/UCT", "Etc/GMT", "Etc/Zulu", "Etc/Universal"})

#: The box of that class hears the browser's zone, by its name in the zone database. It may come
#: onto the page later than the style.
_SCRIPT = escape(
    "var self = this, tries = 0; (function tell() { "
    "var root = self.closest('.lakelog-explorer'), "
    "told = root && root.querySelector('.lakelog-reader-zone input'); "
    "if (!told) { if (tries++ < 100) { setTimeout(tell, 100); } return; } "
    "var zone = Intl.DateTimeFormat().resolvedOptions().timeZone; "
    "if (zone && told.value !== zone) { told.value = zone; "
    "told.dispatchEvent(new Event('input', {bubbles: true})); "
    "told.dispatchEvent(new Event('change', {bubbles: true})); } })()"
)

#: A style that is without effect, but tells the zone once the page has loaded it.
ZONE_TELLER = f'<style onload="{_SCRIPT}">.lakelog-reader-zone {{ display: none; }}</style>'
