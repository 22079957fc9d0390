import time, sys
from playwright.sync_api import sync_playwright
with sync_playwright() as p:
    b=p.chromium.launch(executable_path=None); 
    for url in sys.argv[1:]:
        pg=b.new_page(viewport={"width":1280,"height":1000})
        pg.on("request", lambda r: print("ext", r.url) if "127.0.0.1" not in r.url and not r.url.startswith("data") else None)
        t=time.time(); pg.goto(url); t1=time.time()-t
        try:
            pg.locator(".lakelog-table tbody tr").first.wait_for(timeout=30000)
        except Exception as e: print(str(e)[:200])
        print(url, pg.url, t1, time.time()-t); pg.screenshot(path="/tmp/vp/s.png")
    b.close()
