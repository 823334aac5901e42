"""Makes matplotlib's SVG fit for a page: smaller, with a description, in the text color of the page."""

from __future__ import annotations

import re
from html import escape

from peekbench_figures.style import BLUE, FONTS, INK

CLASS = "peekbench-figure"
# A picture that a browser opens by itself has light ink on a dark background. Within a page, the page sets the colors.
STANDALONE_STYLE = (
    f"<style>.{CLASS} {{ color: #1a1a1a; }} "
    f"@media (prefers-color-scheme: dark) {{ .{CLASS} {{ color: #e6e6e6; }} }}</style>\n"
)
NUMBER = re.compile(r"(\d+\.\d\d)\d+")
COORDINATE = re.compile(r"(\d+\.\d)\d+")
TAG = re.compile(r"<[^>]+>")
OUTLINE = re.compile(r'(?<= d=")[^"]*')
PART_ID = re.compile(r' id="[\w.]+_\d+"')  # patch_7: the same in every picture, so ids would clash in a page
PROLOGUE = re.compile(r"^.*?(?=<svg)", re.DOTALL)
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)
RULES = re.compile(r"<defs>\s*<style.*?</style>\s*</defs>", re.DOTALL)  # would apply to the whole page
BOX = re.compile(r'viewBox="0 0 ([\d.]+) ([\d.]+)"')
NOT_TURNED = re.compile(r' transform="rotate\(-0 [^)]*\)"')
FONT = re.compile(r" ?font-family: [^;\"]*;?")


def simplify_svg(svg: str, title: str, alt_text: str, *, is_inline: bool) -> str:
    """Shorten an SVG of matplotlib to about half, and add a description for readers who cannot see it.

    Parameters
    ----------
    svg
        SVG that matplotlib wrote.
    title, alt_text
        Title and description of the figure, as plain text.
    is_inline
        Whether the SVG becomes part of an HTML page, which then sets size and colors.
    """
    svg = METADATA.sub("", PROLOGUE.sub("", svg, count=1), count=1)
    box = BOX.search(svg)
    assert box is not None
    width, height = (f"{float(side):.0f}" for side in box.groups())
    body = RULES.sub("", svg[svg.index(">") + 1 :], count=1)
    for pattern in (PART_ID, NOT_TURNED, FONT):
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
        f"<title>{escape(title)}</title>\n<desc>{escape(alt_text)}</desc>\n"
    )
    return head + body if is_inline else '<?xml version="1.0" encoding="utf-8"?>\n' + head + STANDALONE_STYLE + body
