"""API keys and passwords of servers, in a file that only the user can read.

Each key belongs to the address of one server, and is sent to no other. An environment variable takes precedence.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

from kgqa.errors import SettingsError
from kgqa.net.servers import OPENAI_URL, base_url
from kgqa.settings.values import user_settings_file
from kgqa.storage.atomic_files import replace_file
from kgqa.storage.loading import load
from kgqa.storage.lock_files import only_one

FILE_NAME = "keys.json"
MAX_KEY_CHARS = 4096
_DEFAULT_PORT = {"http": ":80", "https": ":443"}


def key_file() -> Path:
    """Return the path of the file of keys, in the user's configuration folder."""
    return user_settings_file().with_name(FILE_NAME)


def server_address(server: str) -> str:
    """Return the address to which the key of a server belongs.

    Args:
        server: `openai`, the name of a model (`openai:NAME`, `URL#NAME`), or the URL of a server or an endpoint.

    Raises:
        SettingsError: it is none of these.
    """
    if server.partition(":")[0].strip() == "openai":
        return OPENAI_URL
    parts = urlsplit(base_url(server.partition("#")[0], of="server"))
    return f"{parts.scheme}://{parts.netloc.lower().removesuffix(_DEFAULT_PORT[parts.scheme])}{parts.path}"


def find_key(variable: str, server: str) -> str:
    """Return the key of a server: that of an environment variable, or else the kept one; "" if there is none.

    Raises:
        SettingsError: see `read_keys`.
    """
    return os.environ.get(variable, "").strip() or kept_key(server)


def kept_key(server: str) -> str:
    """Return the kept key of a server; "" if there is none.

    Raises:
        SettingsError: see `read_keys`.
    """
    keys = read_keys()
    return keys.get(server_address(server), "") if keys else ""


def read_keys() -> dict[str, str]:
    """Return the kept keys by the address of their server.

    Raises:
        SettingsError: the file cannot be read, is damaged, or somebody else can read or replace it.
    """
    file = key_file()
    try:
        found, folder = file.stat(), file.parent.stat()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise SettingsError(f"The file of keys {file} cannot be read: {error.strerror}.") from None
    if found.st_uid != os.geteuid() or found.st_mode & 0o077:
        raise SettingsError(
            f"Other users can read the keys in {file}, so they are not used.", f"Protect it: chmod 600 {file}"
        )
    if folder.st_uid not in (os.geteuid(), 0) or folder.st_mode & 0o022:
        raise SettingsError(
            f"Other users can replace the keys in {file}, so they are not used.",
            f"Protect its folder: chmod 700 {file.parent}",
        )
    # a message about a wrong file does not quote it
    return load(file, dict[str, str], error=SettingsError, hint="If it is damaged, remove it, and run kgqa keys set.")


def set_key(server: str, key: str) -> str:
    """Keep the key of a server, and return the server's address.

    Raises:
        SettingsError: the server or the key is invalid, or see `read_keys`. The message does not contain the key.
        OSError: the file cannot be written.
    """
    address, key = server_address(server), key.strip()
    if not key or not key.isprintable() or len(key) > MAX_KEY_CHARS:
        raise SettingsError("The key is empty, too long, or contains control characters.", "Copy it again.")
    _change(address, key)
    return address


def remove_key(server: str) -> str:
    """Remove the key of a server, and return the server's address.

    Raises:
        SettingsError: no key is kept for this server, or see `read_keys`.
        OSError: the file cannot be written.
    """
    address = server_address(server)
    if address not in read_keys():
        raise SettingsError(f"No key is kept for {address}.", "List the servers that have one: kgqa keys list")
    _change(address, None)
    return address


def _change(address: str, key: str | None) -> None:
    """Write the keys with another key of a server, or with none for it; other processes wait."""
    file = key_file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    file.parent.chmod(0o700)
    with only_one(file.with_name(f".{FILE_NAME}.lock")) as locked:
        if not locked:
            raise SettingsError("Another process is changing the keys.", "Try again.")
        keys = {name: kept for name, kept in {**read_keys(), address: key}.items() if kept}
        replace_file(file, [json.dumps(keys, indent=1, sort_keys=True).encode(), b"\n"], mode=0o600)
