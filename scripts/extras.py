"""Measures what each extra of kgqa installs: packages, megabytes, seconds, and licences with conditions.

    python -m scripts.extras                   every extra for users; prints the rows of docs/installation.md
    python -m scripts.extras serve chat        some extras; "" is kgqa alone

Every extra is installed from this tree into a new virtual environment, with constraints.txt. The first row is kgqa
alone; the others say what an extra adds to it. vllm is left out: it installs gigabytes for a GPU.
"""

from __future__ import annotations

import argparse
import configparser
import json
import re
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
NOT_MEASURED = frozenset({"vllm", "lint", "test"})
CONDITIONS = re.compile(r"MPL|GPL|EPL|CDDL|Mozilla|GNU|Affero|Proprietary|^\\?$", re.IGNORECASE)
"""Licences that ask for more than that their text is kept."""
_LIST = """
import importlib.metadata, json
found = []
for each in importlib.metadata.distributions():
    about = each.metadata
    classifiers = [c.rsplit(" :: ", 1)[-1] for c in about.get_all("Classifier", []) if c.startswith("License ::")]
    licence = about.get("License-Expression") or ", ".join(classifiers) or (about.get("License") or "?")[:60]
    size = sum(p.stat().st_size for p in map(each.locate_file, each.files or []) if p.is_file())
    found.append([about["Name"].lower(), size, licence])
print(json.dumps(found))
"""


@dataclass(frozen=True)
class Installed:
    """What one installation contains.

    Attributes:
        sizes: The bytes of each package.
        licences: The licence of each package.
        seconds: Time of the installation.
    """

    sizes: dict[str, int]
    licences: dict[str, str]
    seconds: float


def user_extras() -> list[str]:
    """Return the extras that are measured, in the order of setup.cfg."""
    config = configparser.ConfigParser()
    config.read(ROOT / "setup.cfg", encoding="utf-8")
    return [name for name in config["options.extras_require"] if name not in NOT_MEASURED]


def install(wheel: Path, extra: str) -> Installed:
    """Install the wheel with an extra into a new virtual environment, which is removed again."""
    with tempfile.TemporaryDirectory(prefix="kgqa-extra-") as folder:
        subprocess.run([sys.executable, "-m", "venv", folder], check=True)
        python = Path(folder) / "bin" / "python"
        pip = [str(python), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        start = time.monotonic()
        wanted = f"{wheel}[{extra}]" if extra else str(wheel)
        subprocess.run([*pip, "--constraint", str(ROOT / "constraints.txt"), wanted], check=True)
        seconds = time.monotonic() - start
        listed = subprocess.run([str(python), "-c", _LIST], check=True, capture_output=True, text=True)
    rows = [row for row in json.loads(listed.stdout) if row[0] not in ("pip", "setuptools")]
    return Installed({name: size for name, size, _ in rows}, {name: what for name, _, what in rows}, seconds)


def row(extra: str, found: Installed, base: Installed | None) -> str:
    """Return the cells that are measured: extra, packages, megabytes, seconds, licences to look at."""
    added = sorted(set(found.sizes) - set(base.sizes if base else ()))
    megabytes = sum(found.sizes[name] for name in added) / 1e6
    seconds = found.seconds - (base.seconds if base else 0)
    remarks = [f"{name} ({found.licences[name]})" for name in added if CONDITIONS.search(found.licences[name])]
    largest = sorted(added, key=lambda name: -found.sizes[name])[:4]
    cells = [extra or "(none)", str(len(added)), f"{megabytes:.0f}", f"{max(seconds, 0):.0f}", "; ".join(remarks)]
    return f"| {' | '.join(cells)} |   largest: {', '.join(largest)}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("extras", nargs="*", default=user_extras(), help="names of extras (all but vllm)")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kgqa-wheel-") as folder:
        command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--wheel-dir", folder, str(ROOT)]
        subprocess.run(command, check=True)
        (wheel,) = Path(folder).glob("*.whl")
        base = install(wheel, "")
        print(row("", base, None), flush=True)
        for extra in filter(None, options.extras):
            print(row(extra, install(wheel, extra), base), flush=True)
    return 0


if __name__ == "__main__":
    sys.exit(main())
