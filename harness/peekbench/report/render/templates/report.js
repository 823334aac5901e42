"use strict";
// Sorts and filters plots and tables. Without this script the page shows the same content in its original order.
(() => {
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const MAX_CHOICES = 60;

  function element(name, attributes, ...children) {
    const created = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
    created.append(...children);
    return created;
  }

  function makeSelect(label, options) {
    const choices = options.map((text, position) => element("option", { value: position ? String(position - 1) : "" }, text));
    return element("select", { "aria-label": label }, ...choices);
  }

  // Returns the number of a cell, its text if it is not a number, or null if the value is unknown.
  function sortKey(cell) {
    if (cell === null) return null;
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.textContent;
    return text === "-" || text === "" ? null : text;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return collator.compare(String(a), String(b));
  }

  // Appends rows to their parent in the order of a cell; without an order, in the original one.
  function sortRows(parent, original, cellOf, order) {
    let rows = original;
    if (order !== "none") {
      const sign = order === "ascending" ? 1 : -1;
      const keyed = original.map((row) => [sortKey(cellOf(row)), row]);
      keyed.sort(([a], [b]) => {
        if (a === null || b === null) return (a === null) - (b === null); // unknown values come last
        return sign * compare(a, b);
      });
      rows = keyed.map(([, row]) => row);
    }
    parent.append(...rows);
  }

  // Clicks on a heading sort numbers from the largest and texts from the first, then reversed, then in the order of the
  // page, which can be that of a column.
  function makeSortable(table) {
    const original = [...table.tBodies[0].rows];
    const headings = [...table.tHead.rows[0].cells];
    const initial = headings.map((heading) => heading.getAttribute("aria-sort") ?? "none");
    headings.forEach((heading, column) => {
      const button = element("button", { type: "button" }, heading.textContent);
      const orders = heading.matches(".n") ? ["descending", "ascending"] : ["ascending", "descending"];
      heading.replaceChildren(button);
      heading.setAttribute("aria-sort", initial[column]);
      button.addEventListener("click", () => {
        const order = orders[orders.indexOf(heading.getAttribute("aria-sort")) + 1] ?? "none";
        headings.forEach((other, place) => other.setAttribute("aria-sort", order === "none" ? initial[place] : "none"));
        if (order !== "none") heading.setAttribute("aria-sort", order);
        sortRows(table.tBodies[0], original, (row) => row.cells[column], order);
      });
    });
  }

  // Puts a search field, and a choice for each column of values, before a place. `columns` are pairs of a name and a
  // function from a row to its text.
  function addFilter(place, rows, title, noun, columns) {
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const count = element("output", { class: "shown" });
    const input = element("input", { type: "search", placeholder: "Filter " + noun, "aria-label": "Filter " + noun + " of " + title });
    const selects = [];
    for (const [name, textOf] of columns) {
      const values = [...new Set(rows.map(textOf))];
      if (values.length < 2 || values.length > MAX_CHOICES || values.length === rows.length) continue;
      selects.push([makeSelect(name + ", " + noun + " of " + title, ["any " + name, ...values]), textOf, values]);
    }

    function apply() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let numShown = 0;
      rows.forEach((row, position) => {
        const matches =
          words.every((word) => texts[position].includes(word)) &&
          selects.every(([select, textOf, values]) => select.value === "" || textOf(row) === values[Number(select.value)]);
        row.hidden = !matches;
        numShown += matches;
      });
      count.textContent = numShown + " of " + rows.length + " " + noun;
    }

    const controls = element("div", { class: "controls", role: "group", "aria-label": "Filter " + title });
    controls.append(input, ...selects.map(([select]) => select), count);
    input.addEventListener("input", apply);
    for (const [select] of selects) select.addEventListener("change", apply);
    place.before(controls);
    apply();
    return controls;
  }

  for (const table of document.querySelectorAll("table[data-filter]")) {
    // The texts before the first number identify a row, and offer choices.
    const headings = [...table.tHead.rows[0].cells];
    const end = headings.findIndex((heading) => heading.className === "n");
    const keys = end < 0 ? headings : headings.slice(0, end);
    const columns = keys.map((heading, column) => [heading.textContent, (row) => row.cells[column].textContent]);
    addFilter(table.closest(".scroll"), [...table.tBodies[0].rows], table.caption.textContent, "rows", columns);
  }
  for (const table of document.querySelectorAll("table[data-sort]")) makeSortable(table);
  for (const plot of document.querySelectorAll("[data-plot]")) {
    const list = plot.querySelector("ol");
    const rows = [...list.children];
    const part = (selector) => (row) => row.querySelector("summary > " + selector);
    const decision = part(".badge");
    const controls = addFilter(plot, rows, "verdicts", "methods", [["verdict", (row) => decision(row).lastChild.textContent.trim()]]);
    const orders = [[".numbers", "descending"], [".numbers", "ascending"], ["h3", "ascending"], [".badge", "ascending"]];
    const select = makeSelect("Order of methods", ["in the order of the report", "largest first", "smallest first", "by name", "by verdict"]);
    select.addEventListener("change", () => {
      const [selector, order] = select.value === "" ? ["h3", "none"] : orders[Number(select.value)];
      sortRows(list, rows, part(selector), order);
    });
    controls.insertBefore(select, controls.lastChild);
  }

  // Following a link opens the folded part that contains its target; printing opens all parts.
  function openTarget() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && (target.closest("details") ?? target.closest("li")?.querySelector("details"));
    if (folded) folded.open = true;
  }
  window.addEventListener("hashchange", openTarget);
  openTarget();
  window.addEventListener("beforeprint", () => {
    for (const folded of document.querySelectorAll("details:not([open])")) {
      folded.open = true;
      folded.dataset.unfolded = "";
    }
  });
  window.addEventListener("afterprint", () => {
    for (const folded of document.querySelectorAll("details[data-unfolded]")) {
      folded.open = false;
      delete folded.dataset.unfolded;
    }
  });
})();
