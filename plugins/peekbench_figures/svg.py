"""What matplotlib writes, made fit for a page: small, described, in the page's own text colour."""

from __future__ import annotations

import re
from html import escape

from peekbench_figures.style import FONTS, INK

CLASS = "peekbench-figure"
# By itself in a browser, on a dark ground the picture gets light ink; in a page, the page says.
ALONE = (
    f"<style>.{CLASS} {{ color: #1a1a1a; }} "
    f"@media (prefers-color-scheme: dark) {{ .{CLASS} {{ color: #e6e6e6; }} }}</style>\n"
)
DIGITS = re.compile(r"(\d+\.\d\d)\d+")
PART_NAMES = re.compile(r' id="[A-Za-z_]+[0-9]*_[0-9]+"')  # patch_7: for people, and the same in every picture
PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
SIZE = re.compile(r'<svg [^>]*?height="([\d.]+)pt"[^>]*?width="([\d.]+)pt"[^>]*>|<svg [^>]*>')


def tidy(svg: str, title: str, alt: str, *, is_inline: bool) -> str:
    """Describe the picture for those who do not see it, and shorten it to about half."""
    svg = METADATA.sub("", PROLOGUE.sub("", svg, count=1), count=1)
    svg = PART_NAMES.sub("", svg)
    svg = DIGITS.sub(r"\1", svg)
    svg = svg.replace(INK, "currentColor")
    svg = svg.replace("'DejaVu Sans'", FONTS)
    box = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    assert box is not None
    width, height = box.groups()
    size = "" if is_inline else f' width="{width}pt" height="{height}pt"'
    head = (
        f'<svg class="{CLASS}" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}"{size} role="img">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(alt)}</desc>\n" + ("" if is_inline else ALONE)
    )
    body = svg[svg.index(">") + 1 :].lstrip()
    return head + body if is_inline else '<?xml version="1.0" encoding="utf-8"?>\n' + head + body
