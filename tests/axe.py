"""axe-core in a browser: what keeps people from using a page. `make axe-for-tests` installs it."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from tests.browser import Browser

AXE = Path(__file__).parents[1] / "build" / "npm" / "node_modules" / "axe-core" / "axe.min.js"


def axe_script() -> str:
    """Return the script of axe-core; without it the test fails, or is skipped if npm is missing too."""
    if not AXE.is_file():
        if shutil.which("npm"):
            pytest.fail("axe-core is not installed: make axe-for-tests")
        pytest.skip("axe-core is not installed, and installing it needs npm")
    return AXE.read_text(encoding="utf-8")


def faults(browser: Browser, axe: str) -> list[str]:
    """Return what axe-core finds on the open page, with the elements."""
    if not browser.run("return 'axe' in window"):
        browser.cdp("Runtime.evaluate", expression=axe)
    found = browser.run("return axe.run(document, {resultTypes: ['violations']}).then(result => result.violations)")
    return [f"{each['impact']} {each['id']}: {node['html'][:150]}" for each in found for node in each["nodes"]]
