"""Checks the contracts on imports in `pyproject.toml` with import-linter, which needs the names of all packages.

In the contracts, PLUGINS and LIBRARIES stand for the packages in `plugins/` and `harness/`, so a new one needs no line.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import tomllib
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PACKAGES = {
    "PLUGINS": sorted(path.parent.name for path in (ROOT / "plugins").glob("peekbench_*/__init__.py")),
    "LIBRARIES": sorted(path.parent.name for path in (ROOT / "harness").glob("peekbench_*/__init__.py")),
}


def expand(name: str, value: Any) -> Any:
    """Return a setting with the names of packages; those of one layer are independent of each other."""
    if not isinstance(value, list):
        return value
    if name == "layers":
        return [" | ".join(PACKAGES.get(item, [item])) for item in value]
    return [package for item in value for package in PACKAGES.get(item, [item])]


def write_table(title: str, settings: dict[str, Any]) -> str:
    """Return a table of TOML, of which JSON's strings, lists and truth values are a part."""
    lines = [f"{name} = {json.dumps(expand(name, value))}" for name, value in settings.items()]
    return "\n".join([title, *lines, ""])


def main() -> int:
    """Check all contracts and return the exit status."""
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    contracts = settings.pop("contracts")
    tables = [write_table("[tool.importlinter]", settings)]
    tables += [write_table("[[tool.importlinter.contracts]]", contract) for contract in contracts]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "contracts.toml")
        path.write_text("\n".join(tables), encoding="utf-8")
        return subprocess.run(["lint-imports", "--config", str(path)], cwd=ROOT, check=False).returncode  # noqa: S603, S607


if __name__ == "__main__":
    sys.exit(main())
