"""How the HTML report feels when it is large: `python -m benchmarks.html_report`.

10,000 results and 100,000 messages, and one answer of 10 MB, in a real chromium. Times are what a
person waits for: the middle of several tries, from the key or the click to the next frame drawn.
"""

from __future__ import annotations

import json
import statistics
import tempfile
import time
from pathlib import Path

from mcptest.core.errors import ExitCode
from mcptest.report.html.building import pictured
from mcptest.report.stored import Stored
from tests.html import hostile
from tests.html.browser import Browser, running_browser
from tests.html.large import large_page

TRIES = 5
# Two frames: what was asked for in the first is drawn before the second.
UNTIL_DRAWN = "new Promise((d) => requestAnimationFrame(() => requestAnimationFrame(d)))"
SEARCH = """
(async () => {{
  const box = document.querySelector('#{part}-filters input');
  const began = performance.now();
  box.value = {text};
  box.dispatchEvent(new Event('input', {{ bubbles: true }}));
  await {drawn};
  return performance.now() - began;
}})()
"""
SCROLL = """
(async () => {{
  const list = document.getElementById('{part}-list');
  const room = list.scrollHeight - list.clientHeight;
  const frames = [];
  for (let step = 1; step <= 30; step++) {{
    const began = performance.now();
    list.scrollTop = (room * step) / 30;
    await new Promise((done) => requestAnimationFrame(done));
    frames.push(performance.now() - began);
  }}
  return Math.max(...frames);
}})()
"""


def middle(values: list[float]) -> str:
    return f"{statistics.median(values):.0f} ms"


def opened(browser: Browser, page: Path) -> dict[str, list[float]]:
    """First paint, and until the page answers to keys."""
    found: dict[str, list[float]] = {"first paint": [], "interactive": []}
    for _ in range(3):
        browser.open(page)
        browser.value(UNTIL_DRAWN)
        paints = "performance.getEntriesByName('first-contentful-paint')"
        browser.wait(f"{paints}.length")
        found["first paint"].append(browser.value(f"{paints}[0].startTime"))
        timing = "performance.getEntriesByType('navigation')[0].domComplete"
        found["interactive"].append(browser.value(timing))
    return found


def searched(browser: Browser, part: str, words: list[str]) -> list[float]:
    typed = [words[0][: end + 1] for end in range(len(words[0]))] + words[1:]
    return [
        browser.value(SEARCH.format(part=part, text=json.dumps(text), drawn=UNTIL_DRAWN))
        for text in typed
    ]


def measure_large(browser: Browser, folder: Path) -> None:
    began = time.perf_counter()
    content = large_page()
    print(f"made in                      {time.perf_counter() - began:.1f} s")
    page = folder / "large.html"
    page.write_bytes(content)
    print(f"file                         {len(content) / 1e6:.1f} MB")
    for name, values in opened(browser, page).items():
        print(f"{name:<28} {middle(values)}")
    browser.click("#tab-results")
    print(f"key in a search of results   {middle(searched(browser, 'result', ['test 99', '']))}")
    worst = [browser.value(SCROLL.format(part="result")) for _ in range(TRIES)]
    print(f"longest frame of a scroll    {middle(worst)}")
    browser.click("#tab-wire")
    print(f"key in a search of messages  {middle(searched(browser, 'wire', ['#4999', '']))}")
    worst = [browser.value(SCROLL.format(part="wire")) for _ in range(TRIES)]
    print(f"longest frame of a scroll    {middle(worst)}")
    heap = browser.value("performance.memory.usedJSHeapSize") / 1e6
    print(f"memory of the page           {heap:.0f} MB")


def measure_long(browser: Browser, folder: Path) -> None:
    began = time.perf_counter()
    pictures = pictured([str(hostile.write_capture(folder / "hostile.jsonl"))])
    content = pictures.page([Stored("x", hostile.RUN, ExitCode.FAILED)], ExitCode.FAILED)
    page = folder / "long.html"
    page.write_bytes(content)
    print("\none answer of 10 MB")
    print(f"made in                      {time.perf_counter() - began:.1f} s")
    print(f"file                         {len(content) / 1e6:.1f} MB")
    for name, values in opened(browser, page).items():
        print(f"{name:<28} {middle(values)}")
    shown = []
    for _ in range(TRIES):
        browser.value("location.hash = '#/wire/0/0'")
        started = time.perf_counter()
        browser.value(f"(location.hash = '#/wire/0/{hostile.LONG_ROW}', {UNTIL_DRAWN})")
        shown.append((time.perf_counter() - started) * 1000)
    print(f"the answer is shown          {middle(shown)}")


def main() -> None:
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "profile").mkdir()
        with running_browser(folder / "profile") as browser:
            browser.size(1400, 900)
            print("10,000 results, 100,000 messages")
            measure_large(browser, folder)
            measure_long(browser, folder)


if __name__ == "__main__":
    main()
