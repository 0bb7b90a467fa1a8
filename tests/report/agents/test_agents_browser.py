"""Pages of methods that act in turns in a real browser."""

from __future__ import annotations

from pathlib import Path

import pytest

from kgqa.report.site.writing import write_site
from tests.report.agents.traces import GRAPH_TURNS, TOOL_TURNS, acting_record
from tests.report.conftest import hostile_record
from tests.report.test_comparison import FakeRun
from tests.report.test_pages import ATTACKS

pytestmark = pytest.mark.server
WIDTHS = (400, 1200)
COLOURS = ("light", "dark")
CONTRAST = """
const light = colour => colour.map(part => part / 255).map(part => part <= 0.03928 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4);
const luminance = colour => { const [r, g, b] = light(colour); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
const canvas = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
const painted = (colours) => {
  canvas.clearRect(0, 0, 1, 1);
  for (const colour of colours) { canvas.fillStyle = colour; canvas.fillRect(0, 0, 1, 1); }
  return [...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3);
};
const behind = element => {
  const found = [];
  for (let each = element; each; each = each.parentElement) found.unshift(getComputedStyle(each).backgroundColor);
  return found;
};
const poor = [];
for (const element of document.querySelectorAll('#turns *, #edits *, #walk p *')) {
  if (![...element.childNodes].some(node => node.nodeType === 3 && node.textContent.trim())) continue;
  if (element.closest('.legend span')) continue;
  const layers = behind(element);
  const one = luminance(painted([...layers, getComputedStyle(element).color])), other = luminance(painted(layers));
  const ratio = (Math.max(one, other) + 0.05) / (Math.min(one, other) + 0.05);
  if (ratio < 4.5) poor.push(`${element.tagName} ${element.className} ${ratio.toFixed(2)} ${element.textContent.slice(0, 30)}`);
}
return poor;
"""
"""Lists the texts whose contrast is below 4.5 (WCAG AA); the signs of the legend are shapes."""


@pytest.fixture(scope="module")
def site(tmp_path_factory) -> Path:
    runs = [FakeRun("graph", [acting_record()]), FakeRun("tools", [acting_record(TOOL_TURNS)])]
    return write_site(runs, tmp_path_factory.mktemp("site")).parent


@pytest.mark.parametrize("width", WIDTHS)
def test_page_fits_its_window_and_loads_nothing(browser, site, width):
    browser.set_width(width)
    for page in sorted(site.glob("run-*/*.html")):
        browser.go(page)
        browser.run("document.querySelectorAll('details').forEach(each => each.open = true)")
        assert browser.run("return document.documentElement.scrollWidth") <= width
    assert browser.console() == []
    assert [item for item in browser.fetched() if not item.startswith(site.as_uri())] == []


@pytest.mark.parametrize("colour", COLOURS)
def test_texts_have_enough_contrast(browser, site, colour):
    browser.cdp("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": colour}])
    for page in sorted(site.glob("run-*/*.html")):
        browser.go(page)
        assert browser.run(CONTRAST) == []


def test_walk_is_drawn_inside_its_frame_without_overlapping_names(browser, site):
    browser.set_width(1200)
    browser.go(next(site.glob("run-1/*.html")))
    inside = browser.run(
        "const outer = document.querySelector('svg.walk').getBoundingClientRect();"
        "return [...document.querySelectorAll('svg.walk g.node, svg.walk text')].every(each => {"
        "  const box = each.getBoundingClientRect();"
        "  return box.width > 0 && box.left >= outer.left && box.right <= outer.right && box.bottom <= outer.bottom })"
    )
    apart = browser.run(
        "const boxes = [...document.querySelectorAll('svg.walk text')].map(each => each.getBoundingClientRect());"
        "return boxes.every((one, n) => boxes.slice(n + 1).every(other => one.right <= other.left || "
        "  other.right <= one.left || one.bottom <= other.top || other.bottom <= one.top))"
    )
    assert inside and apart and len(browser.find("svg.walk .node")) == 4


def test_observations_trials_and_edits_work_with_the_keyboard(browser, site):
    browser.set_width(400)
    browser.go(next(site.glob("run-1/*.html")))
    visible = "return [...document.querySelectorAll('.observation')].filter(each => each.checkVisibility()).length"
    assert browser.run(visible) == 2
    browser.run("document.querySelector('.turn details summary').focus()")
    assert browser.run("return document.activeElement.tagName") == "SUMMARY"
    browser.one(".turn details summary").type("\ue007")
    assert browser.run(visible) == 3
    browser.find(".trial > summary")[0].type("\ue00d")
    assert browser.run(visible) == 1
    browser.run("document.querySelector('#walk .wide').focus()")
    assert browser.run("return document.activeElement.getAttribute('aria-label')") == "Walk"
    browser.go(next(site.glob("run-2/*.html")))
    browser.find(".turn a")[0].type("\ue007")
    assert browser.url.endswith("#edit-1")
    assert browser.run("return document.querySelector('.proposal:target del').textContent").startswith("Ines Marr")


def test_hostile_texts_run_no_script(browser, tmp_path):
    record = acting_record((*GRAPH_TURNS, *TOOL_TURNS))
    runs = [FakeRun(f"run {n}", [hostile_record(record, lambda a=attack: a)]) for n, attack in enumerate(ATTACKS)]
    write_site(runs, tmp_path)
    for page in sorted(tmp_path.glob("run-*/*.html")):
        browser.go(page)
        assert browser.run("return typeof window.hacked") == "undefined", page
        assert browser.find("#turns") and browser.find("#edits")
    assert browser.console() == []
    assert [item for item in browser.fetched() if not item.startswith(tmp_path.as_uri())] == []
