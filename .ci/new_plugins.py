"""Plugins as `peekbench new` writes them, for the type checker and for the tutorial on plugins.

``python .ci/new_plugins.py FOLDER`` writes the modules of plugins of all kinds into a folder;
``python .ci/new_plugins.py --document`` updates the module that docs/plugins/tutorial.md shows.
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from peekbench_testing.new_plugin import NewPlugin, list_kinds, render_plugin

DOCUMENT = Path(__file__).parents[1] / "docs" / "plugins" / "tutorial.md"
COMMAND = re.compile(r"^peekbench new (\w+) (\w+)$", re.MULTILINE)
BLOCK = re.compile(r"^(\*\*`([^`]+)`\*\*\n\n```\w+\n)(.*?)(?=^```$)", re.MULTILINE | re.DOTALL)


def write_modules(folder: Path) -> None:
    """Write one module for each kind of plugin."""
    folder.mkdir(parents=True, exist_ok=True)
    for kind in list_kinds():
        plugin = NewPlugin(kind, f"new_{kind}")
        code = render_plugin(plugin)[f"src/{plugin.package}/__init__.py"]
        (folder / f"{plugin.package}.py").write_text(code, encoding="utf-8")


def update_document() -> None:
    """Replace the files that the document shows; a path that several plugins have is that of the first."""
    text = DOCUMENT.read_text(encoding="utf-8")
    files: dict[str, str] = {}
    for kind, name in COMMAND.findall(text):
        files = render_plugin(NewPlugin(kind, name)) | files
    DOCUMENT.write_text(BLOCK.sub(lambda block: block[1] + files.get(block[2], block[3]), text), encoding="utf-8")


def main() -> None:
    """Do what the arguments ask for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", metavar="FOLDER", type=Path, nargs="?", help="folder for the modules")
    parser.add_argument("--document", action="store_true", help="update docs/plugins/tutorial.md")
    arguments = parser.parse_args()
    if arguments.document == (arguments.folder is not None):
        parser.error("give either FOLDER or --document")
    update_document() if arguments.document else write_modules(arguments.folder)


if __name__ == "__main__":
    main()
