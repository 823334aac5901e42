"""Calls Zensical, which renders the staged pages; each of its warnings is an error."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

CONFIGURATION = Path(__file__).with_name("zensical.toml")
ASSETS = ("site.css", "search-worker.js")
ALLOWED_OUTPUT = re.compile(r"(Build started|Build finished in [\d.]+\w+|No issues found|Building .*|)")


class RenderError(Exception):
    """Warnings of Zensical, or of the libraries that it uses."""


def render(folder: Path) -> Path:
    """Render the pages in `source` of a folder, and return the folder of the HTML pages.

    Parameters
    ----------
    folder
        Folder of the site; its folder `html` is replaced.

    Raises
    ------
    RenderError
        If anything unexpected is printed, such as a warning.
    """
    shutil.copy(CONFIGURATION, folder)
    for name in ASSETS:
        shutil.copy(CONFIGURATION.with_name(name), folder / "source")
    for name in (".cache", "html"):
        shutil.rmtree(folder / name, ignore_errors=True)
    command = [sys.executable, "-m", "zensical", "build", "--strict"]
    paths = [str(CONFIGURATION.parents[1]), *filter(None, [os.environ.get("PYTHONPATH")])]  # for website.protocols
    environment = {**os.environ, "NO_COLOR": "1", "PYTHONPATH": os.pathsep.join(paths)}
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)  # noqa: S603
    output = re.sub(r"\x1b\[[0-9;]*m", "", done.stdout + done.stderr)
    unexpected = [line for line in output.splitlines() if not ALLOWED_OUTPUT.fullmatch(line.strip())]
    if done.returncode or unexpected:
        raise RenderError("\n".join(unexpected) or f"zensical ended with status {done.returncode}")
    html = folder / "html"
    # Pages that are opened as files cannot read search.json.
    index = (html / "search.json").read_text(encoding="utf-8")
    (html / "search.js").write_text(f"var __index = {index}", encoding="utf-8")
    return html
