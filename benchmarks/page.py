"""Measures the page in a real Chromium: its weight, and the time until it shows something, on the loopback.

    python -m benchmarks.page

Fails if the page weighs more than 300 kB or the median of its first paints takes a second or more.
"""

from __future__ import annotations

import statistics
import sys
import tempfile
from pathlib import Path

from tests.browser import open_browser
from tests.serve.running import running

LOADS = 7
MOST_BYTES = 300_000
MOST_SECONDS = 1.0
SCRIPT = """
const loaded = [...performance.getEntriesByType('navigation'), ...performance.getEntriesByType('resource')];
const files = loaded.filter(each => /\\/$|\\/static\\//.test(new URL(each.name).pathname));
const paint = performance.getEntriesByName('first-contentful-paint')[0];
return {files: files.map(each => [new URL(each.name).pathname, each.encodedBodySize]), paint: paint && paint.startTime};
"""


def main() -> int:
    with (
        tempfile.TemporaryDirectory() as folder,
        running(rank_embeddings="off") as service,
        open_browser(Path(folder)) as browser,
    ):
        loads = []
        for _ in range(LOADS):
            browser.cdp("Network.clearBrowserCache")
            browser.go("about:blank")
            browser.go(service.url)
            browser.wait_for("document.documentElement.dataset.ready")
            browser.wait_for("performance.getEntriesByName('first-contentful-paint').length")
            loads.append(browser.run(SCRIPT))
    sizes = dict(loads[0]["files"])
    for name, size in sorted(sizes.items(), key=lambda each: -each[1]):
        print(f"{size:>8,} B  {name}")
    weight, first = sum(sizes.values()), statistics.median(each["paint"] for each in loads) / 1000
    print(f"weight {weight:,} B in {len(sizes)} files; first paint {first:.3f} s (median of {LOADS}, cold cache)")
    good = 0 < weight <= MOST_BYTES and first < MOST_SECONDS
    print("within the limits" if good else f"LIMITS: {MOST_BYTES:,} B and {MOST_SECONDS} s")
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())
