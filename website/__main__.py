"""Builds the documentation site in `site/`: `python -m website`."""

from __future__ import annotations

from website.build import build
from website.staging import ROOT

if __name__ == "__main__":
    print(f"{build(ROOT / 'site')}/index.html")
