"""The HTML report in headless Chromium: layout, contrast, sorting, filters, keyboard, printing, security."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pytest

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

SCREENSHOTS = Path(__file__).parents[2] / "screenshots"
WIDTHS = [320, 390, 768, 1400]
Scheme = Literal["light", "dark"]
Open = Callable[..., "Page"]

# Pairs of elements that overlap although neither contains the other. Hidden elements do not count.
OVERLAPS = """
() => {
  const selector = "h1, h2, h3, h4, p, li, dt, dd, pre, svg, .badge, .numbers, .short, .scroll, .controls > *, "
    + "summary, nav a";
  const elements = [...document.querySelectorAll(selector)]
    .filter((element) => element.checkVisibility() && !element.closest(".scroll *"))
    .map((element) => [element, element.getBoundingClientRect()]).filter(([, box]) => box.width > 1 && box.height > 1);
  const overlaps = [];
  elements.forEach(([element, a], position) => elements.slice(position + 1).forEach(([other, b]) => {
    if (element.contains(other) || other.contains(element)) return;
    const width = Math.min(a.right, b.right) - Math.max(a.left, b.left);
    const height = Math.min(a.bottom, b.bottom) - Math.max(a.top, b.top);
    if (width > 1 && height > 1) overlaps.push([element.outerHTML.slice(0, 80), other.outerHTML.slice(0, 80)]);
  }));
  return overlaps;
}
"""
# Elements that extend beyond the window and are not in a box that scrolls.
OUTSIDE = """
() => [...document.querySelectorAll("body *")]
  .filter((element) => element.checkVisibility() && !element.closest(".skip, .visually-hidden, svg"))
  .filter((element) => {
    const box = element.parentElement.closest(".scroll, .drawing, pre");
    return box === null || getComputedStyle(box).overflowX !== "auto";
  })
  .filter((element) => element.getBoundingClientRect().right > innerWidth + 0.5)
  .map((element) => element.outerHTML.slice(0, 100))
"""
# Contrast by the relative luminance of WCAG 2.2.
CONTRAST = """
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const rgba = (color) => {
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = color; canvas.fillRect(0, 0, 1, 1);
    return canvas.getImageData(0, 0, 1, 1).data;
  };
  const luminance = (color) => [...rgba(color)].slice(0, 3).map((part) => part / 255)
    .map((part) => part <= 0.04045 ? part / 12.92 : ((part + 0.055) / 1.055) ** 2.4)
    .reduce((sum, part, channel) => sum + part * [0.2126, 0.7152, 0.0722][channel], 0);
  const contrast = (...colors) => {
    const [dark, bright] = colors.map(luminance).sort((a, b) => a - b);
    return (bright + 0.05) / (dark + 0.05);
  };
  const background = (element) => {
    for (; element; element = element.parentElement) {
      const color = getComputedStyle(element).backgroundColor;
      if (rgba(color)[3] > 0) return color;
    }
  };
"""
# Texts with a contrast below 4.5:1.
FAINT = (
    """() => {"""
    + CONTRAST
    + """
  const faint = [];
  for (const element of document.querySelectorAll("body *")) {
    const hasText = [...element.childNodes].some((child) => child.nodeType === 3 && child.data.trim());
    if (!hasText || !element.checkVisibility()) continue;
    if (element.closest("script, style, .visually-hidden, option")) continue;
    const style = getComputedStyle(element);
    const ratio = contrast(element.closest("svg") ? style.fill : style.color, background(element));
    if (ratio < 4.5) faint.push([ratio.toFixed(2), element.outerHTML.slice(0, 80)]);
  }
  return faint;
}
"""
)


# Marks of the plots on the first screen with a contrast below 3:1 to the page or to the region, for any decision.
@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Open]:
    """Return a function that opens the report; at the end, check for errors and network requests."""
    errors: list[str] = []
    requests: list[str] = []
    contexts = []

    def open_report(width: int = 1280, scheme: Scheme = "light") -> Page:
        context = browser.new_context(viewport={"width": width, "height": 900}, color_scheme=scheme)
        context.set_default_timeout(20_000)
        contexts.append(context)
        page = context.new_page()
        page.on("console", lambda message: errors.append(message.text))
        page.on("pageerror", lambda error: errors.append(str(error)))
        page.on("request", lambda request: requests.append(request.url))
        page.goto(address)
        return page

    yield open_report
    for context in contexts:
        context.close()
    assert errors == []
    assert set(requests) == {address}


def unfold(page: Page) -> None:
    page.evaluate("for (const details of document.querySelectorAll('details')) details.open = true")


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", WIDTHS)
def test_nothing_overlaps_or_overflows(width: int, scheme: Scheme, open_page: Open) -> None:
    page = open_page(width, scheme)
    SCREENSHOTS.mkdir(exist_ok=True)
    page.screenshot(path=SCREENSHOTS / f"report-{width}-{scheme}.png", full_page=True)
    unfold(page)
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert page.evaluate(OUTSIDE) == []
    assert page.evaluate(OVERLAPS) == []


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_all_text_has_enough_contrast(scheme: Scheme, open_page: Open) -> None:
    page = open_page(1280, scheme)
    unfold(page)
    assert page.evaluate(FAINT) == []
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    assert (sum(map(int, dark.removeprefix("rgb(").rstrip(")").split(","))) < 100) == (scheme == "dark")


def by_task(page: Page) -> Any:
    unfold(page)
    return page.locator("#tables details.table", has=page.get_by_role("heading", name="Scores, boost and bias by task"))


def column(section: Any, name: str) -> list[str | None]:
    """Return the sort key of each visible cell of a column: its number, or its text."""
    cells: list[str | None] = section.evaluate(
        """(section, name) => {
          const headings = [...section.querySelectorAll("thead th")];
          const position = headings.findIndex((heading) => heading.textContent === name);
          return [...section.querySelectorAll("tbody tr")].filter((row) => row.checkVisibility())
            .map((row) => row.cells[position].dataset.v ?? row.cells[position].textContent);
        }""",
        name,
    )
    return cells


def test_numbers_sort_as_numbers(open_page: Open) -> None:
    section = by_task(open_page())
    before = column(section, "bias, points")
    assert len(before) == 250
    heading = section.get_by_role("columnheader", name="bias, points", exact=True)
    for order in ("descending", "ascending"):
        heading.get_by_role("button").click()
        assert heading.get_attribute("aria-sort") == order
        values = [float(value or "nan") for value in column(section, "bias, points")]
        assert values == sorted(values, reverse=order == "descending")
    heading.get_by_role("button").click()
    assert column(section, "bias, points") == before, "the original order"
    assert section.locator("th[aria-sort]:not([aria-sort=none])").count() == 0


def test_rows_are_filtered_by_words_and_by_choices(open_page: Open) -> None:
    page = open_page()
    section = by_task(page)
    words = section.get_by_role("searchbox")
    words.fill("task7 METHOD-0")
    assert column(section, "method") == ["method-0"]
    assert section.locator("output").text_content() == "1 of 250 rows"
    words.fill("")
    section.get_by_role("combobox", name=re.compile("^method, ")).select_option(label="lsa")
    assert set(column(section, "method")) == {"lsa"}
    section.get_by_role("combobox", name=re.compile("^task, ")).select_option(label="task3")
    assert section.locator("output").text_content() == "1 of 250 rows"
    section.get_by_role("columnheader", name="bias, points", exact=True).get_by_role("button").click()
    assert column(section, "task") == ["task3"], "sorting keeps the filter"
    words.fill("nothing like it")
    assert column(section, "task") == []
    choices = section.get_by_role("combobox", name=re.compile("^task, ")).locator("option").all_text_contents()
    assert any("<img src=x onerror" in choice for choice in choices), "names are escaped in choices"


def test_the_page_works_with_the_keyboard(open_page: Open) -> None:
    page = open_page()
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.textContent") == "Skip to the verdicts"
    page.keyboard.press("Enter")
    assert page.url.endswith("#content")
    section = by_task(page)
    section.locator("thead button").first.focus()
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    assert section.locator("thead th").nth(1).get_attribute("aria-sort") == "ascending"
    page.keyboard.press("Space")
    assert section.locator("thead th").nth(1).get_attribute("aria-sort") == "descending"
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert outline == "solid", "the focus is visible"
    row = page.locator(".plot li details").first
    row.evaluate("(row) => { row.open = false; }")
    row.locator("summary").focus()
    page.keyboard.press("Enter")
    assert row.get_attribute("open") is not None


def test_the_policy_forbids_requests_and_other_scripts(browser: Browser, address: str) -> None:
    page = browser.new_page()
    page.goto(address)
    refused = page.evaluate(
        """async () => {
          const refused = [];
          document.addEventListener("securitypolicyviolation", (event) => refused.push(event.effectiveDirective));
          document.body.insertAdjacentHTML("beforeend", "<img src='http://127.0.0.1:9/x' onerror='window.ran = 1'>");
          const script = document.createElement("script");
          script.textContent = "window.ran = 2";
          document.body.append(script);
          await fetch("http://127.0.0.1:9/").catch(() => 0);
          await new Promise((resolve) => setTimeout(resolve, 200));
          return [refused.sort(), window.ran ?? 0];
        }"""
    )
    page.close()
    assert refused[1] == 0
    assert {"connect-src", "img-src", "script-src-elem"} <= set(refused[0])
