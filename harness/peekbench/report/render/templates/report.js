"use strict";
// Sorts and filters tables. Without it the page is the same, in the order in which it was written.
(() => {
  const collator = new Intl.Collator("en", { numeric: true, sensitivity: "base" });
  const NEXT = { none: "ascending", ascending: "descending", descending: "none" };
  const MOST_CHOICES = 60;

  function element(name, attributes, ...children) {
    const made = document.createElement(name);
    for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
    made.append(...children);
    return made;
  }

  // The number of a cell, its text where it is none, or null where nothing is known.
  function keyOf(cell) {
    if (cell.dataset.v !== undefined) return Number(cell.dataset.v);
    const text = cell.textContent;
    return text === "-" || text === "" ? null : text;
  }

  function compare(a, b) {
    if (typeof a === "number" && typeof b === "number") return a - b;
    return collator.compare(String(a), String(b));
  }

  function sortable(table) {
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
          const keyed = original.map((row) => [keyOf(row.cells[column]), row]);
          keyed.sort(([a], [b]) => {
            if (a === null || b === null) return (a === null) - (b === null); // what is not known comes last
            return sign * compare(a, b);
          });
          rows = keyed.map(([, row]) => row);
        }
        body.append(...rows);
      });
    });
  }

  function filterable(table) {
    const rows = [...table.tBodies[0].rows];
    const title = table.caption.textContent;
    const texts = rows.map((row) => row.textContent.toLowerCase());
    const count = element("output", { class: "shown" });
    const input = element("input", { type: "search", placeholder: "Filter rows", "aria-label": "Filter rows of " + title });
    const selects = [];
    // Only columns that say what a row is.
    [...table.tHead.rows[0].cells].slice(0, Number(table.dataset.filter)).forEach((heading, column) => {
      const values = [...new Set(rows.map((row) => row.cells[column].textContent))];
      if (values.length < 2 || values.length > MOST_CHOICES || values.length === rows.length) return;
      const name = heading.textContent;
      const select = element("select", { "aria-label": name + ", rows of " + title });
      select.append(element("option", { value: "" }, "any " + name));
      values.forEach((value, position) => select.append(element("option", { value: String(position) }, value)));
      selects.push([select, column, values]);
    });

    function apply() {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let kept = 0;
      rows.forEach((row, position) => {
        const fits =
          words.every((word) => texts[position].includes(word)) &&
          selects.every(([select, column, values]) =>
            select.value === "" || row.cells[column].textContent === values[Number(select.value)]);
        row.hidden = !fits;
        kept += fits;
      });
      count.textContent = kept + " of " + rows.length + " rows";
    }

    const controls = element("div", { class: "controls", role: "group", "aria-label": "Filter " + title });
    controls.append(input, ...selects.map(([select]) => select), count);
    input.addEventListener("input", apply);
    for (const [select] of selects) select.addEventListener("change", apply);
    table.closest(".scroll").before(controls);
    apply();
  }

  for (const table of document.querySelectorAll("table[data-filter]")) filterable(table);
  for (const table of document.querySelectorAll("table[data-sort]")) sortable(table);

  // A link to what is folded away opens it; paper shows everything.
  function open() {
    const target = location.hash.length > 1 && document.getElementById(decodeURIComponent(location.hash.slice(1)));
    const folded = target && target.closest("details");
    if (folded) folded.open = true;
  }
  window.addEventListener("hashchange", open);
  open();
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
