"""What matplotlib writes, made fit for a page: small, described, in the page's own text color."""

from __future__ import annotations

import re
from html import escape

from peekbench_figures.style import BLUE, FONTS, INK

CLASS = "peekbench-figure"
# By itself in a browser, on a dark ground the picture gets light ink; in a page, the page says, of the main color too.
ALONE = (
    f"<style>.{CLASS} {{ color: #1a1a1a; }} "
    f"@media (prefers-color-scheme: dark) {{ .{CLASS} {{ color: #e6e6e6; }} }}</style>\n"
)
NUMBER = re.compile(r"(\d+\.\d\d)\d+")
COORDINATE = re.compile(r"(\d+\.\d)\d+")
TAG = re.compile(r"<[^>]+>")
OUTLINE = re.compile(r'(?<= d=")[^"]*')
PART_NAME = re.compile(r' id="[\w.]+_\d+"')  # patch_7: for people, and the same in every picture
PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
RULES = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)  # which would hold for a whole page
BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
NOT_TURNED = re.compile(r' transform="rotate\(-0 [^)]*\)"')
FONT = re.compile(r" ?font-family: [^;\"]*;?")


def tidy(svg: str, title: str, alt: str, *, is_inline: bool) -> str:
    """Describe the picture for those who do not see it, and shorten it to about half."""
    svg = METADATA.sub("", PROLOGUE.sub("", svg, count=1), count=1)
    box = BOX.search(svg)
    assert box is not None
    width, height = (f"{float(side):.0f}" for side in box.groups())
    body = RULES.sub("", svg[svg.index(">") + 1 :], count=1)
    for pattern in (PART_NAME, NOT_TURNED, FONT):
        body = pattern.sub("", body)
    body = TAG.sub(lambda tag: NUMBER.sub(r"\1", tag[0]), body)
    body = OUTLINE.sub(lambda outline: COORDINATE.sub(r"\1", " ".join(outline[0].split())), body)
    body = re.sub(r"\n\s*", "\n", body.replace(INK, "currentColor")).lstrip()
    if is_inline:
        body = body.replace(BLUE, f"var(--mark, {BLUE})")
    size = "" if is_inline else f' width="{width}pt" height="{height}pt"'
    head = (
        f'<svg class="{CLASS}" xmlns="http://www.w3.org/2000/svg" xmlns:xlink="http://www.w3.org/1999/xlink" '
        f'viewBox="0 0 {width} {height}"{size} font-family="{FONTS}" stroke-linejoin="round" role="img">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(alt)}</desc>\n"
    )
    return head + body if is_inline else '<?xml version="1.0" encoding="utf-8"?>\n' + head + ALONE + body
