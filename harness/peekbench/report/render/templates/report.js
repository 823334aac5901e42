"use strict";
// Sorts and filters tables. Without this script the page shows the same content in its original order.
(() => {
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
  const MAX_CHOICES = 60;

  function element(name, attributes, ...children) {
    const created = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) created.setAttribute(key, value);
    created.append(...children);
    return created;
  }

  // Returns the number of a cell, its text if it is not a number, or null if the value is unknown.
  function sortKey(cell) {
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.textContent;
    return text === "-" || text === "" ? null : text;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return collator.compare(String(a), String(b));
  }

  function makeSortable(table) {
    const body = table.tBodies[0];
    const original = [...body.rows];
    const headings = [...table.tHead.rows[0].cells];
    headings.forEach((heading, column) => {
      const button = element("button", { type: "button" }, heading.textContent);
      heading.replaceChildren(button);
      heading.setAttribute("aria-sort", "none");
      button.addEventListener("click", () => {
        const order = NEXT[heading.getAttribute("aria-sort")];
        for (const other of headings) other.setAttribute("aria-sort", "none");
        heading.setAttribute("aria-sort", order);
        let rows = original;
        if (order !== "none") {
          const sign = order === "ascending" ? 1 : -1;
          const keyed = original.map((row) => [sortKey(row.cells[column]), row]);
          keyed.sort(([a], [b]) => {
            if (a === null || b === null) return (a === null) - (b === null); // unknown values come last
            return sign * compare(a, b);
          });
          rows = keyed.map(([, row]) => row);
        }
        body.append(...rows);
      });
    });
  }

  function makeFilterable(table) {
    const rows = [...table.tBodies[0].rows];
    const title = table.caption.textContent;
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const count = element("output", { class: "shown" });
    const input = element("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows of " + title });
    const selects = [];
    // Only the columns that identify a row offer choices.
    [...table.tHead.rows[0].cells].slice(0, Number(table.dataset.filter)).forEach((heading, column) => {
      const values = [...new Set(rows.map((row) => row.cells[column].textContent))];
      if (values.length < 2 || values.length > MAX_CHOICES || values.length === rows.length) return;
      const name = heading.textContent;
      const select = element("select", { "aria-label": name + ", rows of " + title });
      select.append(element("option", { value: "" }, "any " + name));
      values.forEach((value, position) => select.append(element("option", { value: String(position) }, value)));
      selects.push([select, column, values]);
    });

    function apply() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let numShown = 0;
      rows.forEach((row, position) => {
        const matches =
          words.every((word) => texts[position].includes(word)) &&
          selects.every(([select, column, values]) =>
            select.value === "" || row.cells[column].textContent === values[Number(select.value)]);
        row.hidden = !matches;
        numShown += matches;
      });
      count.textContent = numShown + " of " + rows.length + " rows";
    }

    const controls = element("div", { class: "controls", role: "group", "aria-label": "Filter " + title });
    controls.append(input, ...selects.map(([select]) => select), count);
    input.addEventListener("input", apply);
    for (const [select] of selects) select.addEventListener("change", apply);
    table.closest(".scroll").before(controls);
    apply();
  }

  for (const table of document.querySelectorAll("table[data-filter]")) makeFilterable(table);
  for (const table of document.querySelectorAll("table[data-sort]")) makeSortable(table);

  // Following a link opens the folded part that contains its target; printing opens all parts.
  function openTarget() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest("details");
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
