"""Calls a function in a new process, in which hashes of texts are different and the working folder is empty.

`call` runs in the process of the checks, `main` in the new one.
"""

from __future__ import annotations

import io
import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from peekbench.cache import cache_folder
from peekbench.errors import ContractError, PluginError
from peekbench.execution.determinism import one_thread_pools
from peekbench.formatting import shorten
from peekbench.plugins import registry
from peekbench.plugins.entries import Entry
from peekbench.plugins.local_code import PREFIX, load_module
from peekbench.plugins.names import Code

HASH_VARIABLE = "PYTHONHASHSEED"
MAX_OUTPUT = 500  # characters of the output of a process that ended early


def call(use: str, function: Callable[..., Any], *arguments: Any) -> Any:
    """Call a function in a new process, and return its value.

    Parameters
    ----------
    use
        Name of the entry that is checked. If it is among the arguments, the new process finds it by this name.
    function
        Function at the top level of a module.
    *arguments
        Arguments that can be pickled.

    Raises
    ------
    ContractError
        If the arguments cannot be pickled, the function raises an exception, or the process ends before it returns.
    """
    try:
        content = _pickle(use, (function, arguments))
    except (pickle.PicklingError, AttributeError, TypeError) as error:
        raise ContractError(
            f"it cannot be called in another process: {error}; define it at the top level of a module"
        ) from error
    variables = {HASH_VARIABLE: "2" if os.environ.get(HASH_VARIABLE) == "1" else "1"}
    # With the path of this process, which `-c` alone would precede with the working folder.
    path = [str(Path(folder).absolute()) for folder in sys.path]
    with TemporaryDirectory() as folder:
        question, answer, printed, working = (Path(folder) / name for name in ("question", "answer", "printed", "work"))
        question.write_bytes(pickle.dumps((_find_files(content), content)))
        working.mkdir()
        code = f"import sys; sys.path[:] = {path!r}; from {__name__} import main; main({folder!r})"
        status = run_code(code, os.environ | variables, printed, working)
        if not answer.exists():
            output = printed.read_text(errors="replace").strip()[-MAX_OUTPUT:]
            raise ContractError(f"another process ended with status {status}: {shorten(output, MAX_OUTPUT)}")
        return pickle.loads(answer.read_bytes())  # noqa: S301 - written by the process above


def run_code(code: str, environment: Mapping[str, str], printed: Path, folder: Path) -> int:
    """Run code in a new process in a folder, with its output in a file, and return its exit status."""
    with printed.open("wb") as file:  # a process that the code leaves behind would keep a pipe open
        command = [sys.executable, "-c", code]
        return subprocess.run(  # noqa: S603
            command, env=environment, stdout=file, stderr=subprocess.STDOUT, cwd=folder, check=False
        ).returncode


def _pickle(use: str, value: object) -> bytes:
    """Pickle a value; an entry that is registered under its name, which may contain anything, as this name."""

    class Pickler(pickle.Pickler):
        def persistent_id(self, item: Any) -> tuple[str, type[Entry]] | None:
            with suppress(PluginError):
                if isinstance(item, Entry) and registry.find(use, type(item)) is item:
                    return use, type(item)
            return None

    file = io.BytesIO()
    Pickler(file).dump(value)
    return file.getvalue()


class _Unpickler(pickle.Unpickler):
    def persistent_load(self, name: tuple[str, type[Entry]]) -> Entry:
        return registry.find(*name)


def _find_files(content: bytes) -> list[Code]:
    """Return the files that the new process has to import before it unpickles objects."""
    names = [name for name in list(sys.modules) if name.startswith(PREFIX) and name.encode() in content]
    paths = [Path(str(sys.modules[name].__file__)) for name in names]
    return [Code(path.name, path.parent) for path in paths]


def main(folder: str) -> None:
    """Answer the question in a folder. This is the whole work of the new process."""
    files, content = pickle.loads((Path(folder) / "question").read_bytes())  # noqa: S301 - of `call`
    for file in files:
        load_module(file)
    function, arguments = _Unpickler(io.BytesIO(content)).load()
    with one_thread_pools():
        value = function(*arguments)
    (Path(folder) / "answer").write_bytes(pickle.dumps(value))


@contextmanager
def view_cache() -> Iterator[Path]:
    """Make a temporary folder with all files of the cache, such as models, as links.

    New files, and files that replace others, stay in this folder, so that they neither fill the user's cache nor are
    found by later fits. Folders are not links, because a file that is written into a linked folder would be in the
    cache.
    """
    cache = cache_folder().absolute()
    with TemporaryDirectory(prefix="peekbench-check-", ignore_cleanup_errors=True) as name:
        for place, _, files in os.walk(cache):
            folder = Path(name) / Path(place).relative_to(cache)
            folder.mkdir(exist_ok=True)
            for file in files:
                (folder / file).symlink_to(Path(place) / file)
        yield Path(name)
