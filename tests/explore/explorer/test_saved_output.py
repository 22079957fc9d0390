"""What a notebook keeps of an explorer."""

from __future__ import annotations

import re
from types import SimpleNamespace

import pytest
from hands import Hands

WIDGET = "application/vnd.jupyter.widget-view+json"


def visible(html: str) -> str:
    """What a front end shows that drops styles, scripts and all attributes."""
    html = re.sub(r"<style>.*?</style>", "", html, flags=re.DOTALL)
    return re.sub(r"<(/?\w+)[^>]*>", r"<\1>", html)


def test_the_page_is_kept_beside_the_widget_and_needs_neither_style_nor_script(orders):
    explorer = orders.explore(at=98)

    kept = explorer._repr_mimebundle_()

    assert kept[WIDGET]["model_id"] == explorer.model_id
    assert kept["text/plain"] == repr(explorer)
    assert not re.search(r"<script|onclick|onerror|href|src=", kept["text/html"])
    html = visible(kept["text/html"])
    assert re.search(r"<b>orders-0</b> as of \d{4}-\d\d-\d\d \d\d:\d\d:\d\dZ", html)
    assert "log(&#x27;orders&#x27;).read(0, 98, 130)</code>" in html
    row = html[html.index("<td>99</td>") : html.index("<td>101</td>")]
    assert "<span>cold</span>" in row  # 99
    assert "<span>hot</span>" in row  # 100


def test_only_some_rows_are_kept_and_what_is_in_them_is_escaped(shop):
    shop.topic()
    shop.send(*(("<b>", "<script>x</script>") for _ in range(150)))
    explorer = shop.explore()
    Hands(explorer).type("page-records", 200)
    explorer.wait()

    html = explorer._repr_mimebundle_()["text/html"]

    assert "<script>" not in html
    assert "&lt;script&gt;" in html
    assert html.count("<tr") == 101
    assert "… and 50 more rows" in html


def test_databricks_gets_the_widget_alone(orders, monkeypatch):
    ipython = pytest.importorskip("IPython")
    shell = SimpleNamespace(user_ns={"displayHTML": print})
    monkeypatch.setattr(ipython, "get_ipython", lambda: shell)
    assert orders.explore()._repr_mimebundle_().keys() == {"text/plain", WIDGET}
