"""A Hugging Face Hub on this machine's loopback interface, for tests of the real client library.

It serves repositories from a folder, `datasets/NAMESPACE/NAME/BRANCH/...`, slashes in BRANCH written @. The commit of a
branch is a hash of its content, so that a branch moves when a test changes its files. Models lie in `datasets` too.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from urllib.parse import unquote, urlsplit

FULL_SHA = re.compile(r"[0-9a-f]{40}")


class LoopbackHub:
    """Use as a context manager; `endpoint` is what HF_ENDPOINT should be."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.requests: list[tuple[str, str]] = []
        """(method, path) of each request."""
        self.gated: set[str] = set()
        """Repositories that need an account."""
        self.closed: dict[str, tuple[int, str, str]] = {}
        """Repositories that tell about themselves, but whose files are refused: status, error code and message."""
        self.cut: dict[str, int] = {}
        """End of a file's path to the number of bytes after which the connection breaks."""
        self.kept: dict[str, Path] = {}
        """Earlier commits that are still served."""
        self._server = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._server.daemon_threads = True
        self.endpoint = f"http://127.0.0.1:{self._server.server_port}"
        self._thread = threading.Thread(target=self._server.serve_forever, args=(0.05,))

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()

    def stop(self) -> None:
        """Refuse connections from now on."""
        if self._thread.is_alive():
            self._server.shutdown()
            self._server.server_close()
            self._thread.join()

    def branch(self, repository: str, branch: str = "main") -> Path:
        return self.folder / "datasets" / repository / branch.replace("/", "@")

    def sha(self, repository: str, branch: str = "main") -> str:
        """The commit that a branch stands at."""
        folder = self.branch(repository, branch)
        digest = hashlib.sha1()
        for path in sorted(path for path in folder.rglob("*") if path.is_file()):
            digest.update(str(path.relative_to(self.folder)).encode() + path.read_bytes())
        return digest.hexdigest()

    def keep(self, repository: str, branch: str = "main") -> str:
        """Go on serving the present commit when the branch has moved."""
        sha = self.sha(repository, branch)
        self.kept[f"{repository}@{sha}"] = self.folder / "kept" / sha
        shutil.copytree(self.branch(repository, branch), self.folder / "kept" / sha)
        return sha

    def serve_as(self, sha: str, repository: str, branch: str = "main") -> None:
        """Serve a branch's content under a commit that it would have on the real Hub."""
        self.kept[f"{repository}@{sha}"] = self.branch(repository, branch)

    def find(self, repository: str, revision: str) -> tuple[str, Path] | None:
        """Commit and content of a revision."""
        if FULL_SHA.fullmatch(revision):
            if kept := self.kept.get(f"{repository}@{revision}"):
                return revision, kept
            for folder in sorted((self.folder / "datasets" / repository).iterdir()):
                if self.sha(repository, folder.name) == revision:
                    return revision, folder
            return None
        folder = self.branch(repository, revision)
        return (self.sha(repository, revision), folder) if folder.is_dir() else None

    def environment(self, home: Path, **more: str) -> dict[str, str]:
        """Variables for a process whose Hub this is and whose caches lie in `home`."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("HF_", "PEEKBENCH_"))}
        return {
            **kept,
            "HF_ENDPOINT": self.endpoint,
            "HF_HOME": str(home / "hf"),
            "HF_HUB_DISABLE_TELEMETRY": "1",
            "HF_HUB_DISABLE_PROGRESS_BARS": "1",
            "PEEKBENCH_CACHE": str(home / "cache"),
            "NO_PROXY": "*",
            **more,
        }

    def python(self, code: str, home: Path, *arguments: str, **more: str) -> subprocess.CompletedProcess[str]:
        """Run Python code in such a process; HF_ENDPOINT counts when the client is imported."""
        return subprocess.run(
            [sys.executable, "-c", code, *arguments],
            env=self.environment(home, **more),
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def downloads(self) -> list[str]:
        """Paths of the files that were sent, in order, each once."""
        got = [path for method, path in self.requests if method == "GET" and "/resolve/" in path]
        return list(dict.fromkeys(path.split("/resolve/")[1].split("/", 1)[1] for path in got))


def _handler(hub: LoopbackHub) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def log_message(self, *_: object) -> None:
            pass

        def do_HEAD(self) -> None:
            self.answer()

        def do_GET(self) -> None:
            self.answer()

        def answer(self) -> None:
            path = urlsplit(self.path).path
            parts = [unquote(part) for part in path.strip("/").split("/")]
            hub.requests.append((self.command, unquote(path)))
            if parts[0] == "api" and parts[1:2] in (["datasets"], ["models"]) and len(parts) >= 4:
                self.about(f"{parts[2]}/{parts[3]}", parts[4:])
            elif parts[0] == "datasets" and len(parts) >= 6 and parts[3] == "resolve":
                self.file(f"{parts[1]}/{parts[2]}", parts[4], "/".join(parts[5:]))
            elif len(parts) >= 5 and parts[2] == "resolve":  # of a model
                self.file(f"{parts[0]}/{parts[1]}", parts[3], "/".join(parts[4:]))
            elif parts[0] == "web" and (hub.folder / path.strip("/")).is_file():
                self.send((hub.folder / path.strip("/")).read_bytes(), "application/octet-stream")
            else:
                self.fail(404, "EntryNotFound")

        def find(self, repository: str, revision: str) -> tuple[str, Path] | None:
            if repository in hub.gated:
                self.fail(401, "GatedRepo")
            elif not (hub.folder / "datasets" / repository).is_dir():
                self.fail(404, "RepoNotFound")
            elif (found := hub.find(repository, revision)) is None:
                self.fail(404, "RevisionNotFound")
            else:
                return found
            return None

        def about(self, repository: str, rest: list[str]) -> None:
            revision = rest[1] if len(rest) > 1 else "main"
            if (found := self.find(repository, revision)) is None:
                return
            sha, folder = found
            if rest[:1] != ["tree"]:
                self.send(json.dumps({"id": repository, "sha": sha}).encode(), "application/json")
                return
            top = folder.joinpath(*rest[2:])
            recursive = "recursive=True" in self.path or "recursive=true" in self.path
            found_paths = sorted(top.rglob("*") if recursive else top.iterdir())
            self.send(json.dumps([_tree_item(path, folder) for path in found_paths]).encode(), "application/json")

        def file(self, repository: str, revision: str, name: str) -> None:
            if (found := self.find(repository, revision)) is None:
                return
            sha, folder = found
            if repository in hub.closed:
                status, code, message = hub.closed[repository]
                self.fail(status, code, {"X-Error-Message": message})
                return
            path = folder / name
            if not path.is_file():
                self.fail(404, "EntryNotFound", {"X-Repo-Commit": sha})
                return
            content = path.read_bytes()
            headers = {
                "ETag": f'"{hashlib.sha1(content).hexdigest()}"',
                "X-Repo-Commit": sha,
                "Accept-Ranges": "bytes",
            }
            status = 200
            if match := re.fullmatch(r"bytes=(\d+)-", self.headers.get("Range", "")):
                headers["Content-Range"] = f"bytes {match[1]}-{len(content) - 1}/{len(content)}"
                content, status = content[int(match[1]) :], 206
            after = next((number for suffix, number in hub.cut.items() if name.endswith(suffix)), None)
            self.send(content, "application/octet-stream", headers, status, after)

        def fail(self, status: int, code: str, headers: dict[str, str] | None = None) -> None:
            message = {"X-Error-Code": code, "X-Error-Message": code, **(headers or {})}
            self.send(json.dumps({"error": code}).encode(), "application/json", message, status)

        def send(
            self,
            content: bytes,
            kind: str,
            headers: dict[str, str] | None = None,
            status: int = 200,
            cut_after: int | None = None,
        ) -> None:
            self.send_response(status)
            for name, value in {"Content-Type": kind, "Content-Length": str(len(content)), **(headers or {})}.items():
                self.send_header(name, value)
            self.end_headers()
            if self.command == "HEAD":
                return
            self.wfile.write(content if cut_after is None else content[:cut_after])
            if cut_after is not None:
                self.wfile.flush()
                self.close_connection = True

    return Handler


def _tree_item(path: Path, folder: Path) -> dict[str, Any]:
    inside = path.relative_to(folder).as_posix()
    if path.is_dir():
        return {"type": "directory", "path": inside, "oid": hashlib.sha1(inside.encode()).hexdigest(), "size": 0}
    content = path.read_bytes()
    return {"type": "file", "path": inside, "oid": hashlib.sha1(content).hexdigest(), "size": len(content)}
