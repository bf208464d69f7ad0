// Iterations in time: a row for each task, a bar for each attempt.

import { get, loopPath } from "./api.js";
import { h, show } from "./dom.js";
import { timeTicks } from "./charts.js";
import { clock, counted, shadeOf, span } from "./text.js";
import { virtual } from "./virtual.js";

const MOST_SPANS = 5000;

export function timelineView(ctx) {
  let spans = [];
  let rows = [];
  let zoomed = 1;
  let end = null;
  const axis = h("div.axis", { "aria-hidden": "true" });
  const note = h("span.soft");
  const source = { total: 0, get: (number) => rows[number], changed: () => {} };
  const list = virtual({ label: "Iterations by task", height: 32, source, rowId: "span", render: line, open: (row) => ctx.openTask(row.task) });
  const el = h("div.list-view.gantt", null, h("div.tools", null,
    h("button", { onclick: () => zoom(2), "aria-label": "Zoom in" }, "+"), h("button", { onclick: () => zoom(0.5), "aria-label": "Zoom out" }, "−"),
    h("button", { onclick: () => shift(-0.5), "aria-label": "Earlier" }, "←"), h("button", { onclick: () => shift(0.5), "aria-label": "Later" }, "→"),
    h("button", { onclick: () => { zoomed = 1; end = null; draw(); } }, "All of it"), note), axis, list.el);

  const stop = (one) => one.ended_at ? Date.parse(one.ended_at) : moment();
  const moment = () => ctx.moment() && ctx.status() ? Date.parse(ctx.status().updated_at) : ctx.status()?.engine_alive ? Date.now() : Math.max(...spans.map((one) => Date.parse(one.ended_at || one.agent_ended_at || one.started_at)), 0);

  async function load() {
    const { total } = await get(loopPath(ctx.id, "iterations"), { limit: 0 });
    const found = await get(loopPath(ctx.id, "iterations"), { from: Math.max(0, total - MOST_SPANS), limit: MOST_SPANS });
    spans = found.iterations;
    gather();
    show(note, total > MOST_SPANS ? `the last ${counted(spans.length, "iteration")} of ${total}` : counted(total, "iteration"));
  }

  function gather() {
    const at = ctx.moment();
    const by = new Map();
    for (const one of spans) {
      if (at && one.seq > at) continue;
      const then = at && one.ended_seq > at ? { ...one, ended_at: null, outcome: "under way" } : one;
      if (!by.has(one.task)) by.set(one.task, { task: one.task, spans: [] });
      by.get(one.task).spans.push(then);
    }
    rows = [...by.values()];
    source.total = rows.length;
    draw();
  }

  function room() {
    const first = spans.length ? Date.parse(spans[0].started_at) : Date.now();
    const last = Math.max(first + 1000, moment());
    const wide = (last - first) / zoomed;
    const to = end === null ? last : Math.min(last, Math.max(first + wide, end));
    return [to - wide, to];
  }

  function draw() {
    const [from, to] = room();
    show(axis, timeTicks(from, to, 7).map(({ at, label }) => h("span", { style: { left: `${(100 * (at - from)) / (to - from)}%` } }, label)));
    list.redraw();
  }

  function line(row) {
    const [from, to] = room();
    const place = (at) => (100 * (at - from)) / (to - from);
    const bars = row.spans.filter((one) => stop(one) >= from && Date.parse(one.started_at) <= to).slice(-200).map((one) => {
      const [left, right] = [Math.max(0, place(Date.parse(one.started_at))), Math.min(100, place(stop(one)))];
      const agent = one.agent_ended_at ? Math.min(100, (100 * (Date.parse(one.agent_ended_at) - Date.parse(one.started_at))) / Math.max(1, stop(one) - Date.parse(one.started_at))) : 100;
      const words = `#${one.iteration} ${one.task}, attempt ${one.attempt}: ${one.outcome}, ${clock(one.started_at)}, ${span(stop(one) - Date.parse(one.started_at))}`;
      return h(`i.span.is-${shadeOf(one.outcome)}`, { title: words, role: "img", "aria-label": words, style: { left: `${left}%`, width: `max(3px, ${right - left}%)`, "--agent": `${agent}%` } });
    });
    return h("div.lane", null, h("b.id", { title: row.task }, row.task), h("div.track", null, bars));
  }

  function zoom(by) { zoomed = Math.max(1, Math.min(4096, zoomed * by)); draw(); }
  function shift(part) { const [from, to] = room(); end = to + (to - from) * part; draw(); }
  const tick = setInterval(() => { if (!ctx.moment() && ctx.status()?.engine_alive) draw(); }, 1000);

  return {
    el,
    load,
    change({ iterations }) {
      for (const one of iterations) {
        const at = spans.findLastIndex((other) => other.seq === one.seq);
        if (at >= 0) spans[at] = one; else spans.push(one);
      }
      if (!ctx.moment()) gather();
    },
    close: () => { clearInterval(tick); list.close(); },
  };
}
