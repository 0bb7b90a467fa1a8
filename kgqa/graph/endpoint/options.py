"""Options for SPARQL endpoints, read from the settings: login, limits, profile and cache."""

from __future__ import annotations

import os
from dataclasses import dataclass, field, replace

from kgqa.errors import SettingsError
from kgqa.graph.store import is_address
from kgqa.net.servers import check_url, is_loopback
from kgqa.settings.keys import kept_key
from kgqa.settings.values import FILE_NAME, Settings
from kgqa.storage.corpus_file import CorpusFile
from kgqa.text.hints import Hint, Option
from kgqa.text.words import clean

PASSWORD_VARIABLE = "KGQA_ENDPOINT_PASSWORD"


@dataclass(frozen=True)
class Access:
    """Login and limits for the requests to an endpoint.

    Attributes:
        contact: e-mail address or URL of a person to contact, for the User-Agent header.
        concurrency: the largest number of concurrent requests; None for the value of the server's profile.
        rate: the largest number of requests per second; None for the value of the server's profile.
        patience: seconds during which a request is repeated while the server does not answer.
    """

    user: str = ""
    password: str = field(default="", repr=False)
    contact: str = ""
    concurrency: int | None = None
    rate: float | None = None
    patience: float = 10.0


def check_address(url: str) -> str:
    """Check the address of an endpoint, and return it without surrounding spaces.

    Raises:
        SettingsError: see `check_url`.
    """
    url = url.strip()
    check_url(
        url,
        of="SPARQL endpoint",
        key=Hint(
            f"Set endpoint.user and {PASSWORD_VARIABLE} for a login, and name graphs with ", Option("graph-iri"), "."
        ),
    )
    return url


@dataclass(frozen=True)
class EndpointOptions:
    """Options for all SPARQL endpoints that a run uses.

    Attributes:
        caches: whether results are stored on disk.
        row_cap: number of rows at which the server is known to truncate results.
    """

    profile: str = "auto"
    access: Access = field(default_factory=Access)
    caches: bool = True
    row_cap: int | None = None

    @classmethod
    def of(cls, settings: Settings) -> EndpointOptions:
        """Read the options from settings, and the password from the environment.

        Raises:
            SettingsError: a login is set, but only the settings file of the working folder contains the server's
                address. Somebody else may have written that file.
        """
        user, password = settings.endpoint.user or "", os.environ.get(PASSWORD_VARIABLE, "")
        location = settings.graph.path or ""
        if (user or password) and is_address(location) and "graph.path" in settings.local:
            url = check_address(location)
            raise SettingsError(
                f"Your login is not sent to {clean(url)[:200]}, because only {FILE_NAME} in the working folder names "
                "this server.",
                "To log in there, name the server yourself: ",
                Option("graph", "URL"),
                ", or the environment variable KGQA_GRAPH_PATH.",
            )
        return cls(
            profile=settings.endpoint.profile,
            access=Access(
                user=user,
                password=password,
                contact=settings.endpoint.contact or "",
                concurrency=settings.endpoint.concurrency,
                rate=settings.endpoint.rate,
            ),
            caches=settings.endpoint.cache == "on",
            row_cap=settings.endpoint.row_cap,
        )

    def check_login(self, corpus: CorpusFile, *, writing: bool = False) -> None:
        """Check that neither a login nor documents are sent to a server that only a corpus folder names.

        The folder may be another person's.

        Args:
            writing: whether documents will be written to the server.

        Raises:
            SettingsError: there is something to send, and the server is not on this machine, and the user has kept no
                password for it.
        """
        url = corpus.url and check_address(corpus.url)
        if not url or not (writing or self.access.user or self.access.password) or is_loopback(url) or kept_key(url):
            return
        what, do = ("Nothing is written", "write there") if writing else ("Your login is not sent", "log in there")
        raise SettingsError(
            f"{what} to {clean(url)[:200]}, because only the corpus folder {clean(str(corpus.folder))} names this "
            "server.",
            f"To {do}, keep your password for this server: kgqa keys set {url}",
        )

    def access_to(self, url: str) -> Access:
        """Return login and limits for a server; without a password, the login has the one kept for this address.

        Raises:
            SettingsError: see `read_keys`.
        """
        if not self.access.user or self.access.password:
            return self.access
        return replace(self.access, password=kept_key(check_address(url)))
