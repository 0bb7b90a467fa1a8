"""How to install an extra of kgqa, depending on how kgqa itself was installed."""

from __future__ import annotations

import json
import shlex
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit


def install_command(extra: str) -> str:
    """Return the command that installs an extra of kgqa, such as `minilm`.

    In a clone, the constraints keep pip from downloading CUDA builds of torch. An installed wheel brings its list of
    extras, so pip needs no index that has kgqa.
    """
    clone = clone_folder()
    if clone is None:
        return f"pip install 'kgqa[{extra}]'"
    change = "" if clone == Path.cwd() else f"cd {shlex.quote(str(clone))} && "
    return f"{change}pip install -c constraints.txt -e '.[{extra}]'"


@cache
def clone_folder() -> Path | None:
    """Return the folder of the clone that kgqa is imported or was installed from; None if there is none."""
    from importlib.metadata import PackageNotFoundError, distribution  # takes a third of the time of `--version`

    folders = [Path(__file__).resolve().parent.parent]
    with suppress(PackageNotFoundError, ValueError, TypeError, KeyError):
        url = urlsplit(json.loads(distribution("kgqa").read_text("direct_url.json") or "")["url"])
        folders += [Path(unquote(url.path))] if url.scheme == "file" else []
    return next((each for each in folders if all((each / name).is_file() for name in _FILES)), None)


_FILES = ("constraints.txt", "setup.cfg", "kgqa/installation.py")
"""Files that a clone has."""
