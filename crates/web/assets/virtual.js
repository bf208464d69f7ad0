// Long lists: only what can be seen is there, and what is needed is fetched in pages.

import { h } from "./dom.js";

// Browsers give up on elements that are higher than some millions of pixels.
const HIGHEST = 8_000_000;
const PAGE = 200;

// Rows by number, fetched as they are needed: `fetch(from, limit)` answers with { total, rows }.
export class Pages {
  constructor(fetch) {
    this.fetch = fetch;
    this.total = 0;
    this.pages = new Map();
    this.changed = () => {};
    this.turn = 0;
  }

  // Asks again for everything, without showing less in the meantime.
  async reload() {
    this.turn += 1;
    const turn = this.turn;
    const first = await this.fetch(0, PAGE);
    if (turn !== this.turn) return;
    this.pages = new Map([[0, first.rows]]);
    this.total = first.total;
    this.changed();
  }

  get(number) {
    const page = Math.floor(number / PAGE);
    if (!this.pages.has(page)) {
      this.pages.set(page, null);
      const turn = this.turn;
      this.fetch(page * PAGE, PAGE).then(({ total, rows }) => {
        if (turn !== this.turn) return;
        this.pages.set(page, rows);
        this.total = total;
        this.changed();
      }).catch(() => this.pages.delete(page));
    }
    return this.pages.get(page)?.[number % PAGE];
  }

  // Changes rows that are here already.
  update(key, rows) {
    const by = new Map(rows.map((row) => [row[key], row]));
    for (const page of this.pages.values()) {
      page?.forEach((row, at) => { if (by.has(row[key])) page[at] = by.get(row[key]); });
    }
    this.changed();
  }
}

export function virtual({ label, height, source, render, open, rowId }) {
  const space = h("div.space");
  const rows = h("div.rows", { role: "presentation" });
  const box = h("div.virtual", { role: "listbox", tabindex: "0", "aria-label": label, style: { "--row": `${height}px` } }, space, rows);
  let chosen = -1;
  let due = 0;

  const full = () => source.total * height;
  const shown = () => Math.min(full(), HIGHEST);
  // Where the list stands, in rows, whatever the scale.
  const top = () => {
    const room = shown() - box.clientHeight;
    if (full() <= HIGHEST || room <= 0) return box.scrollTop / height;
    return (box.scrollTop / room) * (source.total - box.clientHeight / height);
  };

  function draw() {
    due = 0;
    space.style.setProperty("height", `${shown()}px`);
    const first = Math.max(0, Math.floor(top()));
    const last = Math.min(source.total, first + Math.ceil(box.clientHeight / height) + 2);
    const made = [];
    for (let number = Math.max(0, first - 2); number < last; number += 1) {
      const row = source.get(number);
      const node = row ? render(row, number) : h("div.row.waiting", null, "…");
      node.classList.add("vrow");
      node.setAttribute("role", "option");
      node.setAttribute("aria-setsize", source.total);
      node.setAttribute("aria-posinset", number + 1);
      node.setAttribute("aria-selected", number === chosen);
      node.id = `${rowId}-${number}`;
      node.style.setProperty("top", `${box.scrollTop + (number - top()) * height}px`);
      if (row && open) node.addEventListener("click", () => { chosen = number; open(row, number); draw(); });
      made.push(node);
    }
    rows.replaceChildren(...made);
    if (chosen >= 0) box.setAttribute("aria-activedescendant", `${rowId}-${chosen}`);
  }

  const later = () => { if (!due) due = requestAnimationFrame(draw); };

  function go(number) {
    chosen = Math.max(0, Math.min(source.total - 1, number));
    // What is not as high as it will be cannot be scrolled there.
    space.style.setProperty("height", `${shown()}px`);
    const room = Math.floor(box.clientHeight / height);
    if (chosen < top() || chosen >= top() + room - 1) {
      const want = Math.max(0, chosen - Math.floor(room / 2));
      const scale = full() <= HIGHEST ? height : (shown() - box.clientHeight) / Math.max(1, source.total - room);
      box.scrollTop = want * scale;
    }
    later();
  }

  box.addEventListener("scroll", later, { passive: true });
  box.addEventListener("keydown", (event) => {
    const room = Math.max(1, Math.floor(box.clientHeight / height) - 1);
    const step = { ArrowDown: 1, ArrowUp: -1, PageDown: room, PageUp: -room, Home: -Infinity, End: Infinity }[event.key];
    if (step !== undefined) { event.preventDefault(); go(Math.max(0, Math.min(source.total - 1, chosen + step))); }
    else if (event.key === "Enter" && chosen >= 0 && source.get(chosen) && open) open(source.get(chosen), chosen);
  });
  const watch = new ResizeObserver(later);
  watch.observe(box);
  source.changed = later;
  return { el: box, redraw: later, go, atEnd: () => box.scrollTop + box.clientHeight >= shown() - height * 2, close: () => watch.disconnect() };
}
