"""Stopping a server: everything is written to disk first."""

from __future__ import annotations

import time

from kgqa.errors import ServerError, SqlError
from kgqa.virtuoso.server.folder import ServerFolder
from kgqa.virtuoso.server.launching import shut_down, wait_for_end
from kgqa.virtuoso.server.session import Session
from kgqa.virtuoso.server.state import lock_owner
from kgqa.virtuoso.server.troubles import explain_sql


def stop(folder: ServerFolder, *, timeout: float) -> bool:
    """See `Server.stop`."""
    owner = lock_owner(folder.lock)
    if owner is None:
        return False
    began = time.monotonic()
    try:
        shut_down(Session(folder).address(), timeout=timeout)
    except SqlError as error:
        raise explain_sql(error, folder) from None
    if not wait_for_end(owner.pid, timeout=max(1.0, timeout - (time.monotonic() - began))):
        raise ServerError(
            f"The server ({owner}) has not ended within {timeout:g} s: it may still be writing to disk. "
            f"Look again: kgqa virtuoso status. To end it without: kill {owner.pid}"
        )
    return True
