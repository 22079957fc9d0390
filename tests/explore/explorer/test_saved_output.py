"""What a notebook keeps of an explorer, as the messages that it is sent."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hands import Hands
from held import Held

from lakelog.testing.eventually import eventually

display = pytest.importorskip("IPython.display")

WIDGET = "application/vnd.jupyter.widget-view+json"


@pytest.fixture
def sent(monkeypatch) -> list[tuple[dict, dict]]:
    """What was displayed: the data, and how."""
    found: list[tuple[dict, dict]] = []
    monkeypatch.setattr(display, "display", lambda data, **how: found.append((data, how)))
    return found


def visible(html: str) -> str:
    """What a front end shows that drops styles, scripts and all attributes."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return re.sub(r"<(/?\w+)[^>]*>", r"<\1>", html)


def test_the_page_is_kept_below_the_widget_and_needs_neither_style_nor_script(orders, sent):
    explorer = orders.explore(at=98)

    explorer._ipython_display_()

    (widget, _), (kept, how) = sent
    assert widget[WIDGET]["model_id"] == explorer.model_id
    assert how["display_id"]
    assert kept["text/plain"] == repr(explorer)
    assert not re.search(r"<script|onclick|onerror|href|src=", kept["text/html"])
    html = visible(kept["text/html"])
    assert re.search(r"<b>orders-0</b> as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", html)
    assert "log(&#x27;orders&#x27;).read(0, 98, 130)</code>" in html
    row = html[html.index("<td>99</td>") : html.index("<td>101</td>")]
    assert "<span>cold</span>" in row  # 99
    assert "<span>hot</span>" in row  # 100


def test_another_page_takes_its_place(orders, sent):
    explorer = orders.explore()
    explorer._ipython_display_()
    _, (_, first) = sent

    explorer.forward()
    explorer._saved.write()

    kept, how = sent[-1]
    assert how == {"raw": True, "display_id": first["display_id"], "update": True}
    assert ".read(0, 50, 100)" in kept["text/html"]


def test_rows_that_come_after_the_display_are_kept(orders, sent, monkeypatch):
    held = Held(monkeypatch)
    explorer = orders.lakelog.explore("orders")
    explorer._ipython_display_()
    assert "<table" not in sent[-1][0]["text/html"]

    held.questions[0][1].set()
    explorer.wait()

    eventually(lambda: len(sent) == 3)
    assert ".read(0, 0, 50)" in sent[-1][0]["text/html"]
    assert sent[-1][0]["text/html"].count("<tr") == 51


def test_only_some_rows_are_kept_and_what_is_in_them_is_escaped(shop, sent):
    shop.topic()
    shop.send(*(("<b>", "<script>x</script>") for _ in range(150)))
    explorer = shop.explore()
    Hands(explorer).type("page-records", 200)
    explorer.wait()

    explorer._ipython_display_()

    html = sent[-1][0]["text/html"]
    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr") == 101
    assert "… and 50 more rows" in html


def test_databricks_gets_the_widget_alone(orders, sent, monkeypatch):
    ipython = pytest.importorskip("IPython")
    shell = SimpleNamespace(user_ns={"displayHTML": print})
    monkeypatch.setattr(ipython, "get_ipython", lambda: shell)
    explorer = orders.explore()

    explorer._ipython_display_()

    ((data, _),) = sent
    assert data == explorer._repr_mimebundle_()
