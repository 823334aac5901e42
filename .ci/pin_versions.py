"""Regenerate constraints.txt: the newest versions that together satisfy pyproject.toml, its extras and tox.ini.

Nothing is installed. The versions are those for the Python that runs this, which should be the oldest one supported.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tomllib
from configparser import RawConfigParser
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).parents[1]
CONSTRAINTS = ROOT / "constraints.txt"
HELD = ["torch==2.13.0"]  # constraints.txt says why


def declared() -> list[str]:
    """Every requirement that pyproject.toml and tox.ini name.

    The extras come last: where two requirements cannot both have their newest version, pip favors the one named first.
    """
    pyproject = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    project = pyproject["project"]
    found = [*pyproject["build-system"]["requires"], *project["dependencies"]]
    tox = RawConfigParser()
    tox.read(ROOT / "tox.ini", encoding="utf-8")
    for section in tox.sections():
        for key in ("requires", "deps"):
            lines = tox.get(section, key, fallback="").split("\n")
            found += [line for line in lines if line and not line.startswith("{")]
    for extra in project["optional-dependencies"].values():
        found += [requirement for requirement in extra if not requirement.startswith("peekbench[")]
    return list(dict.fromkeys(found))


def resolve(requirements: list[str]) -> dict[str, str]:
    """Ask pip which version of what would be installed: name to version.

    Raises
    ------
    subprocess.CalledProcessError
        Where no versions fit together; pip has said which.
    """
    pip = [sys.executable, "-m", "pip", "install", "--dry-run", "--ignore-installed", "--quiet"]
    unpinned = {name: value for name, value in os.environ.items() if name != "PIP_CONSTRAINT"}
    with TemporaryDirectory() as folder:
        report = Path(folder) / "report.json"
        subprocess.run([*pip, "--report", report, *requirements], check=True, env=unpinned)  # noqa: S603
        installed = json.loads(report.read_text(encoding="utf-8"))["install"]
    return {item["metadata"]["name"]: item["metadata"]["version"] for item in installed}


def main() -> None:
    """Write the file, keeping its heading."""
    heading = [line for line in CONSTRAINTS.read_text(encoding="utf-8").splitlines() if line.startswith("#")]
    versions = resolve([*declared(), *HELD])
    pins = [f"{name}=={versions[name].partition('+')[0]}" for name in sorted(versions, key=str.lower)]
    CONSTRAINTS.write_text("\n".join([*heading, *pins]) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
