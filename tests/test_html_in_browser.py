"""The post-mortem page in a real browser: quiet console, no request, links that lead somewhere, names as text."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from investigation_variants import HOSTILE_NAMES, all_variants, named
from selenium import webdriver
from selenium.webdriver.chrome.service import Service

from causeline import reports
from causeline.reports import wording

pytestmark = pytest.mark.browser

PAGES = ("inc-4127", "quiet", "tied", "two-root-causes", "empty", "many-hypotheses", "long-names")
# A common phone in portrait (CSS pixels).
PHONE = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}


def _found(*names: str) -> str:
    paths = [path for name in names if (path := shutil.which(name))]
    lacking = f"none of {', '.join(names)} is installed: apt-get install chromium chromium-driver"
    assert paths or "CI" not in os.environ, lacking
    return paths[0] if paths else pytest.skip(lacking)


@pytest.fixture(scope="module")
def browser() -> Iterator[webdriver.Chrome]:
    options = webdriver.ChromeOptions()
    options.binary_location = _found("chromium", "chromium-browser", "google-chrome")
    for argument in ("headless=new", "no-sandbox", "disable-gpu", "disable-dev-shm-usage", "no-first-run"):
        options.add_argument(f"--{argument}")
    # the browser's own housekeeping would be mistaken for requests of the page
    for argument in ("disable-background-networking", "disable-component-update", "disable-sync", "disable-quic"):
        options.add_argument(f"--{argument}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(_found("chromedriver")))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("pages")
    variants = {name: all_variants()[name] for name in PAGES}
    variants |= {f"hostile-{number}": named(name) for number, name in enumerate(HOSTILE_NAMES)}
    written = {}
    for name, investigation in variants.items():
        written[name] = folder / f"{name}.html"
        written[name].write_text(reports.render(investigation, "html"), encoding="utf-8")
    return written


def _open(browser: webdriver.Chrome, page: Path) -> list[str]:
    """Opens a page; returns the addresses it asked for."""
    browser.get_log("performance")
    browser.get_log("browser")
    browser.get(page.as_uri())
    messages = [json.loads(entry["message"])["message"] for entry in browser.get_log("performance")]
    return [
        message["params"]["request"]["url"] for message in messages if message["method"] == "Network.requestWillBeSent"
    ]


@pytest.mark.parametrize("name", PAGES)
def test_page_asks_for_nothing_and_console_stays_empty(
    browser: webdriver.Chrome, pages: dict[str, Path], name: str
) -> None:
    requests = _open(browser, pages[name])
    assert [url for url in requests if url != pages[name].as_uri() and not url.startswith("data:,")] == []
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", PAGES)
def test_internal_links_resolve(browser: webdriver.Chrome, pages: dict[str, Path], name: str) -> None:
    _open(browser, pages[name])
    dead = browser.execute_script(
        "return [...document.querySelectorAll('a[href^=\"#\"]')].map(a => a.getAttribute('href').slice(1))"
        '.filter(id => document.querySelectorAll(`[id="${id}"]`).length != 1)'
    )
    assert dead == []


@pytest.mark.parametrize("number", range(len(HOSTILE_NAMES)))
def test_hostile_name_is_a_text_node(browser: webdriver.Chrome, pages: dict[str, Path], number: int) -> None:
    _open(browser, pages[f"hostile-{number}"])
    body = browser.execute_script("return document.body.textContent")
    # what stands between backticks is shown as code, without them
    name = wording.visible(HOSTILE_NAMES[number]).replace("`", "")
    assert wording.one_line(name) in wording.one_line(body.replace("`", ""))
    intruders = browser.execute_script(
        "return [...document.querySelectorAll('script, img, iframe, object, embed, b b')].length"
    )
    assert intruders == 0
    assert browser.get_log("browser") == []


@pytest.mark.parametrize("name", (*PAGES, "hostile-0", "hostile-10", "hostile-11"))
def test_page_is_not_wider_than_a_phone(browser: webdriver.Chrome, pages: dict[str, Path], name: str) -> None:
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", PHONE)
    try:
        _open(browser, pages[name])
        browser.execute_script("document.querySelectorAll('details').forEach(one => one.open = true)")
        assert browser.execute_script("return document.documentElement.scrollWidth") <= PHONE["width"]
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


def test_link_into_a_folded_table_unfolds_it(browser: webdriver.Chrome, pages: dict[str, Path]) -> None:
    _open(browser, pages["inc-4127"])
    browser.execute_script("location.hash = 'file-1'")
    assert browser.execute_script("return document.getElementById('file-1').closest('details').open")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(browser: webdriver.Chrome, pages: dict[str, Path], scheme: str) -> None:
    """WCAG 2.1, 1.4.3: contrast of 4.5 to 1 at least, for every text colour of the page on the grounds it stands on."""
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [feature]})
    try:
        _open(browser, pages["inc-4127"])
        pairs = browser.execute_script(CONTRASTS)
        assert len(pairs) > 5
        assert [pair for pair in pairs if pair[0] < 4.5] == []
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})


CONTRASTS = """
const luminance = rgb => {
  const [r, g, b] = rgb.map(v => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  return 0.2126 * r + 0.7152 * g + 0.0722 * b;
};
const numbers = colour => colour.match(/[\\d.]+/g).map(Number);
const ground = element => {
  for (let e = element; e; e = e.parentElement) {
    const parts = numbers(getComputedStyle(e).backgroundColor);
    if (parts.length === 3 || parts[3] > 0) return parts.slice(0, 3);
  }
  return [255, 255, 255];
};
const seen = new Map();
for (const element of document.querySelectorAll('body *')) {
  const text = [...element.childNodes].some(n => n.nodeType === 3 && n.textContent.trim().replace('·', ''));
  const shown = element.checkVisibility() && !element.closest('style');
  if (!text || !shown) continue;
  const style = getComputedStyle(element);
  const ink = numbers(element.closest('figure') && element.tagName === 'text' ? style.fill : style.color).slice(0, 3);
  if (element.tagName === 'text' && style.strokeWidth === '5px') continue;
  const below = ground(element);
  const [low, high] = [luminance(ink), luminance(below)].sort((a, b) => a - b);
  const pair = `${ink} on ${below}`;
  seen.set(pair, [(high + 0.05) / (low + 0.05), pair, element.textContent.slice(0, 30)]);
}
return [...seen.values()];
"""
