"""Writes texts for language models: `llms.txt` lists the pages, each of which is also a Markdown file (llmstxt.org)."""

from __future__ import annotations

import re
from html import unescape
from pathlib import Path

from website.navigation import nav_pages, read_project

TAG = re.compile(r"<(script|style|svg)\b.*?</\1>|<[^>]+>", re.DOTALL)
FENCE = re.compile(r"^```.*?^```$", re.DOTALL | re.MULTILINE)
MEMBER = re.compile(r"^::: .*", re.MULTILINE)


def write_llms(configuration: Path, source: Path, html: Path) -> None:
    """Write `llms.txt`, a Markdown file next to each page, and `llms-full.txt` with all of them.

    Parameters
    ----------
    configuration
        File of Zensical with the key `nav`.
    source
        Folder of the staged pages.
    html
        Folder of the HTML pages, to which the files are added.
    """
    project = read_project(configuration)
    index = [f"# {project['site_name']}", f"> {project['site_description']}."]
    texts = []
    for part in project["nav"]:
        for section, content in part.items():
            lines = []
            for title, path in nav_pages(content, section):
                text = (source / path).read_text(encoding="utf-8")
                summary = _summary(text)
                if MEMBER.search(text):  # mkdocstrings adds what docstrings say
                    text = _plain_text(html / path.replace(".md", ".html"))
                (html / path).write_text(text, encoding="utf-8")
                lines.append(f"- [{title}]({path}): {summary or _summary(text)}")
                texts.append(text)
            index.append(f"## {section}\n\n" + "\n".join(lines))
    (html / "llms.txt").write_text("\n\n".join(index) + "\n", encoding="utf-8")
    (html / "llms-full.txt").write_text("\n\n".join(texts), encoding="utf-8")


def _summary(text: str) -> str:
    """Return the first sentence of a page that stands in a paragraph, or nothing if there is none."""
    for part in FENCE.sub("", text).split("\n\n")[1:]:
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", " ".join(part.split()))
        sentence = re.split(r"(?<=[.?])\s", words)[0]
        if sentence.endswith((".", "?")) and not re.match(r"[#!|*<>-]|:::|\d+\.|\s", part):
            return sentence
    return ""


def _plain_text(page: Path) -> str:
    """Return the article of an HTML page as text."""
    text = page.read_text(encoding="utf-8")
    article = text[text.index("<article") : text.index("</article>")]
    lines = (unescape(line).strip() for line in TAG.sub("", article).replace("&para;", "").splitlines())
    return re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip() + "\n"
