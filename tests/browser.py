"""A headless Chromium driven by ChromeDriver over the WebDriver protocol (W3C, 2018).

Only what the tests need: navigation, elements, scripts, the console, the network log and screenshots. Background requests
of the browser are switched off.
"""

from __future__ import annotations

import base64
import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import urllib3

ELEMENT = "element-6066-11e4-a52e-4f735466cecf"
DRIVER = shutil.which("chromedriver")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
OPTIONS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --window-size=1200,900"
).split()


class Browser:
    """A browser window."""

    def __init__(self, http: urllib3.PoolManager, session: str) -> None:
        self._http = http
        self._session = session

    def command(self, method: str, path: str, **body: Any) -> Any:
        data = json.dumps(body) if method == "POST" else None
        reply = self._http.request(method, f"{self._session}{path}", body=data)
        value = json.loads(reply.data)["value"]
        if reply.status != 200:
            raise RuntimeError(f"{path}: {value.get('error')}: {value.get('message')}")
        return value

    def go(self, place: Path | str) -> None:
        """Open a file, or an address."""
        self.command("POST", "/url", url=place if isinstance(place, str) else place.absolute().as_uri())

    @property
    def url(self) -> str:
        return self.command("GET", "/url")

    def find(self, selector: str) -> list[Element]:
        found = self.command("POST", "/elements", using="css selector", value=selector)
        return [Element(self, item[ELEMENT]) for item in found]

    def one(self, selector: str) -> Element:
        (found,) = self.find(selector)
        return found

    def run(self, script: str, *arguments: Any) -> Any:
        return self.command("POST", "/execute/sync", script=script, args=list(arguments))

    def wait_for(self, script: str, seconds: float = 10) -> Any:
        """Evaluate a script repeatedly until its value is true, and return that value."""
        end = time.monotonic() + seconds
        while not (found := self.run(f"return {script}")):
            assert time.monotonic() < end, f"waited in vain for {script}"
            time.sleep(0.02)
        return found

    def cdp(self, command: str, **parameters: Any) -> Any:
        return self.command("POST", "/goog/cdp/execute", cmd=command, params=parameters)

    def set_width(self, width: int) -> None:
        """Show pages as in a window of this width, until `reset`."""
        self.cdp("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)

    def reset(self) -> None:
        """Leave the page, forget its logs, and end what was emulated."""
        self.cdp("Emulation.clearDeviceMetricsOverride")
        self.cdp("Emulation.setEmulatedMedia", features=[])
        self.go(Path("/dev/null"))
        self.console(), self.fetched()

    def console(self) -> list[str]:
        """Return the console messages since the last call."""
        return [item["message"] for item in self.command("POST", "/se/log", type="browser")]

    def fetched(self) -> list[str]:
        """Return the URLs requested since the last call."""
        found = []
        for entry in self.command("POST", "/se/log", type="performance"):
            message = json.loads(entry["message"])["message"]
            if message["method"] == "Network.requestWillBeSent":
                found.append(message["params"]["request"]["url"])
        return found

    def screenshot(self) -> bytes:
        return base64.b64decode(self.command("GET", "/screenshot"))


class Element:
    def __init__(self, browser: Browser, ident: str) -> None:
        self._browser, self._path = browser, f"/element/{ident}"

    @property
    def text(self) -> str:
        return self._browser.command("GET", f"{self._path}/text")

    def click(self) -> None:
        self._browser.command("POST", f"{self._path}/click")

    def type(self, text: str) -> None:
        self._browser.command("POST", f"{self._path}/value", text=text)

    def clear(self) -> None:
        self._browser.command("POST", f"{self._path}/clear")

    def attribute(self, name: str) -> str | None:
        return self._browser.command("GET", f"{self._path}/attribute/{name}")


def needs_browser() -> None:
    """Skip the test if there is no browser; fail if one could have been installed."""
    if DRIVER and CHROMIUM:
        return
    if shutil.which("apt-get") and os.geteuid() == 0:
        pytest.fail("Chromium is not installed: make browser-for-tests")
    pytest.skip("Chromium and ChromeDriver are not installed, and installing them needs root and apt")


@contextmanager
def open_browser(folder: Path) -> Iterator[Browser]:
    """Open a browser with its profile in `folder`."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    environment = {**os.environ, "HOME": str(folder), "XDG_CONFIG_HOME": str(folder), "XDG_CACHE_HOME": str(folder)}
    driver = subprocess.Popen(
        [str(DRIVER), f"--port={port}", "--log-level=OFF"],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
        start_new_session=True,
    )
    http = urllib3.PoolManager(headers={"Content-Type": "application/json"}, timeout=60, retries=False)
    base = f"http://127.0.0.1:{port}"
    try:
        _wait_until_ready(http, base, driver)
        options = {"binary": CHROMIUM, "args": [*OPTIONS, f"--user-data-dir={folder / 'profile'}"]}
        capabilities = {
            "browserName": "chrome",
            "goog:chromeOptions": options,
            "goog:loggingPrefs": {"browser": "ALL", "performance": "ALL"},
        }
        body = json.dumps({"capabilities": {"alwaysMatch": capabilities}})
        value = json.loads(http.request("POST", f"{base}/session", body=body).data)["value"]
        assert "sessionId" in value, value
        session = f"{base}/session/{value['sessionId']}"
        try:
            yield Browser(http, session)
        finally:
            http.request("DELETE", session)
    finally:
        driver.terminate()
        driver.wait(20)


def _wait_until_ready(http: urllib3.PoolManager, base: str, driver: subprocess.Popen[bytes]) -> None:
    end = time.monotonic() + 20
    while True:
        assert driver.poll() is None, "chromedriver ended at once"
        try:
            if json.loads(http.request("GET", f"{base}/status").data)["value"]["ready"]:
                return
        except (urllib3.exceptions.HTTPError, ValueError, KeyError):
            pass
        assert time.monotonic() < end, "chromedriver does not answer"
        time.sleep(0.05)


@pytest.fixture(scope="session")
def opened_browser(tmp_path_factory) -> Iterator[Browser]:
    needs_browser()
    with open_browser(tmp_path_factory.mktemp("browser")) as found:
        yield found


@pytest.fixture
def browser(opened_browser) -> Browser:
    """A browser as it was opened."""
    opened_browser.reset()
    return opened_browser
