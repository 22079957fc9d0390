"""Who tells the page what to show."""

from __future__ import annotations

import asyncio
import threading

from hands import Hands

from lakelog.testing.eventually import eventually


def test_the_main_thread_alone_tells_the_page_if_it_is_to(orders):
    """In its event loop, as a kernel's, or while it waits; whatever thread a click comes on."""
    told: list[threading.Thread] = []

    async def notebook() -> None:
        explorer = orders.lakelog.explore("orders", main_thread=True)
        hands = Hands(explorer)
        for widget in explorer._screen.ui.all():
            for one in (widget, widget.layout):
                one.observe(lambda _: told.append(threading.current_thread()))

        hands.find("latest").click()
        await asyncio.to_thread(explorer.wait)
        assert hands.offsets()[-1] == 129
        await asyncio.to_thread(hands.click, "earliest")
        assert hands.offsets()[0] == 0
        assert explorer.seek(10).view.start_offset == 10
        assert hands.offsets()[0] == 10

        hands.find("follow").value = True
        for offset in (130, 131):
            orders.send(f"news {offset}")
            await asyncio.to_thread(eventually, lambda end=offset: hands.offsets()[-1] == end)
        hands.find("opened").value = "0:131"
        orders.send("more news")
        await asyncio.to_thread(eventually, lambda: hands.find("new").description == "+1 new")
        assert "131" in hands.html("record")
        explorer.stop()
        await asyncio.to_thread(eventually, lambda: hands.html("progress") == "")
        assert explorer.search("text 101").view.match is not None
        assert hands.offsets() == [101]
        explorer.close()

    asyncio.run(notebook())
    assert {*told} == {threading.main_thread()}
