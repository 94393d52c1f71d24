"""Makes the pictures of the documentation again: `python -m tests.html.screenshots FOLDER`.

What they show is real: suites, the demo and the reference server, run and judged just now. Each
view is taken light and dark, wide and narrow. Needs chromium, and node for the reference server.
"""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

from tests.html.browser import Browser, running_browser

ROOT = Path(__file__).parents[2]
EVERYTHING = ROOT / "tests/peers/npm/node_modules/.bin/mcp-server-everything"
MOST_BYTES = 150_000
SIZES = {"wide": (1280, 800), "narrow": (420, 844)}
SUITE = """\
tests:
  - name: the server answers
    assert: {tool: echo, args: {text: hello}, expect: {equals: hello}}
  - name: two and two is four
    assert: {tool: add, args: {a: 2, b: 2}, expect: {json_path: {$.sum: 4}}}
  - name: a failing tool says so
    assert: {tool: fail, args: {message: out of coffee}, expect: {is_error: true}}
"""
WEATHER = """\
tests:
  - name: Oslo has its weather
    assert: {tool: weather, args: {city: Oslo}, expect: {json_path: {$.conditions: windy}}}
  - name: a slow tool is in time
    timeout: 270ms
    assert: {tool: slow, args: {seconds: 0.25}, expect: {not_error: true}}
"""

FAULTY = f"""\
import sys

sys.path.insert(0, {str(ROOT)!r})
from tests.mutants.__main__ import main

sys.exit(main(["SCHEMA-006"]))
"""
"""A server with one fault: a result that does not match its schema."""


class Shot(NamedTuple):
    name: str
    page: str
    place: str
    then: str = ""
    """A script that brings the view into the state to be seen."""


def run(folder: Path, *words: str) -> None:
    command = [sys.executable, "-m", "mcptest", *words]
    done = subprocess.run(command, cwd=folder, capture_output=True, timeout=300, check=False)
    assert done.returncode in (0, 1), done.stderr.decode()


def make_pages(folder: Path) -> None:
    (folder / "offers.yaml").write_text(SUITE)
    weather = folder / "weather.yaml"
    weather.write_text(WEATHER)
    run(folder, "run", "weather.yaml", "--server", "demo", "--save-baseline", "baseline.json")
    weather.write_text(WEATHER.replace("windy", "sunny"))
    kept = ("--server", "demo", "--trials", "6", "--save-capture", "captures", "--jobs", "1")
    reports = ("--baseline", "baseline.json", "--json-file", "run.json", "--html", "run.html")
    run(folder, "run", "offers.yaml", "weather.yaml", *kept, *reports)
    for name, server in (("demo", "demo"), ("everything", str(EVERYTHING))):
        judged = ("--spec-version", "all", "--save-capture", f"wire-{name}")
        run(folder, "compliance", "run", "--server", server, *judged, "--json-file", f"{name}.json")
    wire = ("--capture", "wire-demo", "--capture", "wire-everything")
    run(folder, "report", "demo.json", "everything.json", *wire, "--html", "judged.html")
    (folder / "server.py").write_text(FAULTY)
    for words, page in ((("compliance", "run"), "compliance.html"), (("audit",), "audit.html")):
        run(folder, *words, "--server", "python server.py", "--html", page)


def entry_named(page: Path, name: str) -> int:
    """The number of the first entry that failed and has this name or id."""
    block = page.read_bytes().partition(b'id="page">')[2].partition(b"</script>")[0]
    entries = json.loads(block)["entries"]
    return next(
        number
        for number, one in enumerate(entries)
        if one["outcome"] == "fail" and name in (one.get("id"), one["name"].partition(" (trial")[0])
    )


def shots(folder: Path) -> list[Shot]:
    failed = entry_named(folder / "run.html", "Oslo has its weather")
    cell = "document.querySelector('#matrix-list .mark.fail').click();"
    to_wire = "document.querySelector('#matrix-detail .to-wire').click()"
    return [
        Shot("overview", "run.html", "/overview"),
        Shot("failure", "run.html", f"/results/{failed}"),
        Shot("compliance", "compliance.html", "/overview"),
        Shot("audit", "audit.html", "/overview"),
        Shot("wire", "judged.html", "/matrix", then=cell + to_wire),
        Shot("matrix", "judged.html", "/matrix", then=cell),
    ]


def take(browser: Browser, page: Path, shot: Shot, size: str, scheme: str) -> bytes:
    browser.media(scheme)
    browser.size(*SIZES[size])
    browser.open(page, shot.place)
    then = shot.then if size == "wide" or shot.name != "matrix" else ""
    if then:
        browser.value(then)
    if size == "narrow" and shot.name == "wire":  # the diagram, not one message
        browser.value("document.querySelector('#wire .back').click()")
    browser.value("new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))")
    return base64.b64decode(browser.send("Page.captureScreenshot", format="png")["data"])


def with_fewer_colors(image: bytes) -> bytes:
    """Where pngquant is installed: a picture of text needs no more than 256 of them."""
    if shutil.which("pngquant") is None:
        return image
    return subprocess.run(["pngquant", "-"], input=image, capture_output=True, check=True).stdout


def file_of(shot: Shot, size: str, scheme: str) -> str:
    """`html-wire.png` is wide and light; what is not has it in its name."""
    other = [word for word in (size, scheme) if word not in ("wide", "light")]
    return "-".join(["html", shot.name, *other]) + ".png"


def main(target: Path) -> None:
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        make_pages(folder)
        (folder / "profile").mkdir()
        with running_browser(folder / "profile") as browser:
            for shot in shots(folder):
                for size in SIZES:
                    for scheme in ("light", "dark"):
                        image = take(browser, folder / shot.page, shot, size, scheme)
                        image = with_fewer_colors(image)
                        assert len(image) <= MOST_BYTES, (shot.name, size, scheme, len(image))
                        (target / file_of(shot, size, scheme)).write_bytes(image)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
