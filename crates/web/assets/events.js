// The journal, all of it, in one line each; any of them in full, and the loop as it was at it.

import { get, loopPath } from "./api.js";
import { h, say, show } from "./dom.js";
import { clock, count, day } from "./text.js";
import { Pages, virtual } from "./virtual.js";

export function eventsView(ctx) {
  const total = h("span.soft", { "aria-live": "polite" });
  const whole = h("div.whole", { hidden: true });
  // Events are numbered without gaps, so the place in the list is the number.
  const source = new Pages(async (from, limit) => {
    const found = await get(loopPath(ctx.id, "events"), { after: from, limit });
    const last = ctx.moment() || found.last_seq;
    show(total, `${count(last)} events`);
    return { total: last, rows: found.events };
  });
  const list = virtual({
    label: "Events", height: 30, source, rowId: "event", open: (row) => openEvent(row),
    render: (row) => h("div.event", null, h("span.soft.no", null, count(row.seq)), h("time.soft", { datetime: row.at, title: day(row.at) }, clock(row.at)),
      h("span.kind", null, row.type.replaceAll("_", " ")), h("span.title", null, row.words)),
  });

  async function openEvent(row) {
    try {
      const event = await get(loopPath(ctx.id, "events", row.seq));
      show(whole, h("header", null, h("h3", null, `Event ${count(row.seq)}`), h("button", { onclick: () => ctx.goTo(row.seq) }, "The loop at this moment"),
        row.task && h("button", { onclick: () => ctx.openTask(row.task) }, row.task),
        h("button.icon", { "aria-label": "Close", onclick: () => { whole.hidden = true; } }, "×")), h("pre", { tabindex: "0" }, JSON.stringify(event, null, 2).slice(0, 200000)));
      whole.hidden = false;
    } catch (error) { say(error.message); }
  }

  return {
    el: h("div.list-view", null, h("div.tools", null, total, h("button", { onclick: () => list.go(0) }, "First"), h("button", { onclick: () => list.go(source.total - 1) }, "Newest")), list.el, whole),
    async load() {
      await source.reload();
      list.go(source.total - 1);
    },
    event(row) {
      if (ctx.moment()) return;
      const end = list.atEnd();
      // Only pages that are here are added to; the others are fetched when they are looked at.
      const page = source.pages.get(Math.floor((row.seq - 1) / 200));
      if (page) page[(row.seq - 1) % 200] = row;
      source.total = row.seq;
      show(total, `${count(row.seq)} events`);
      if (end) list.go(row.seq - 1); else list.redraw();
    },
    close: list.close,
  };
}
