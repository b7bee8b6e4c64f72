
"use strict";
(() => {
  const root = document.documentElement;
  const tip = document.getElementById("tip");

  document.getElementById("theme").addEventListener("click", () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
  });

  // What lies under the pointer. Text only: nothing of a name is ever read as markup.
  addEventListener("pointermove", (event) => {
    const text = event.target.dataset ? event.target.dataset.t : undefined;
    tip.hidden = !text;
    if (!text) return;
    tip.textContent = text;
    const { width, height } = tip.getBoundingClientRect();
    const x = Math.min(event.clientX + 14, innerWidth - width - 8);
    const y = event.clientY + 18 + height > innerHeight ? event.clientY - height - 10 : event.clientY + 18;
    tip.style.left = Math.max(4, x) + "px";
    tip.style.top = y + "px";
  });
  document.documentElement.addEventListener("pointerleave", () => { tip.hidden = true; });

  // The strips zoom about the pointer.
  const size = (bytes) => {
    const units = ["B", "kB", "MB", "GB", "TB"];
    let unit = 0;
    while (bytes >= 1000 && unit < units.length - 1) { bytes /= 1000; unit += 1; }
    return bytes.toFixed(unit ? 2 : 0) + " " + units[unit];
  };
  for (const box of document.querySelectorAll(".stripbox")) {
    const strip = box.querySelector(".strip");
    const axis = box.querySelector(".axis");
    const note = box.closest("figure").querySelector(".zoomed");
    const full = Number(box.dataset.width);
    const used = [...strip.querySelectorAll("rect")].reduce((most, rect) => Math.max(most, rect.x.baseVal.value + rect.width.baseVal.value), 1);
    const bytesPerUnit = Number(box.dataset.bytes) / used;
    let from = 0;
    let width = full;
    strip.setAttribute("preserveAspectRatio", "none");
    const show = () => {
      strip.setAttribute("viewBox", `${from} 0 ${width} 36`);
      axis.style.visibility = width < full ? "hidden" : "visible";
      note.textContent = width < full ? size(from * bytesPerUnit) + " to " + size((from + width) * bytesPerUnit) : "";
    };
    strip.addEventListener("wheel", (event) => {
      event.preventDefault();
      const area = strip.getBoundingClientRect();
      const at = (event.clientX - area.left) / area.width;
      const next = Math.min(full, Math.max(full / 5000, width * Math.exp(event.deltaY / 300)));
      from = Math.min(full - next, Math.max(0, from + at * (width - next)));
      width = next;
      show();
    }, { passive: false });
    strip.addEventListener("dblclick", () => { from = 0; width = full; show(); });
  }

  // The table of all tensors.
  const table = document.getElementById("all");
  if (table) {
    const body = table.tBodies[0];
    const rows = [...body.rows];
    const heads = [...table.tHead.rows[0].cells];
    heads.forEach((head, column) => {
      head.querySelector("button").addEventListener("click", () => {
        const up = head.getAttribute("aria-sort") === "descending" || (column < 3 && head.getAttribute("aria-sort") !== "ascending");
        heads.forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", up ? "ascending" : "descending");
        const key = (row) => {
          const cell = row.cells[column];
          if (!cell) return "";
          return cell.dataset.v === undefined ? cell.textContent : Number(cell.dataset.v);
        };
        const order = (a, b) => (typeof a === "number" && typeof b === "number" ? a - b : String(a).localeCompare(String(b)));
        const sorted = rows.map((row, place) => [key(row), place, row]).sort((a, b) => (up ? 1 : -1) * order(a[0], b[0]) || a[1] - b[1]);
        body.append(...sorted.map((entry) => entry[2]));
      });
    });
    const filter = document.getElementById("filter");
    const shown = document.getElementById("shown");
    filter.addEventListener("input", () => {
      const wanted = filter.value.toLowerCase();
      let count = 0;
      for (const row of rows) {
        row.hidden = !row.cells[0].textContent.toLowerCase().includes(wanted);
        count += row.hidden ? 0 : 1;
      }
      shown.textContent = wanted ? `${count} of ${rows.length}` : "";
    });
  }
  root.dataset.ready = "yes";
})();
