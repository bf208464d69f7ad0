// Through time: the loop as it was at any event.

import { frozen, get, loopPath } from "./api.js";
import { h, show, svg } from "./dom.js";
import { count, day, shadeOf } from "./text.js";

const WAIT = 70;
const STRIPES = 400;

export function slider(ctx, go) {
  const input = h("input", { type: "range", min: "1", max: "1", value: "1", step: "1", "aria-label": "Moment" });
  const words = h("span.words", { "aria-live": "polite" });
  const stripes = svg("svg.stripes", { viewBox: `0 0 ${STRIPES} 1`, preserveAspectRatio: "none", "aria-hidden": "true" });
  const live = h("button.live", { onclick: () => go(null) }, h("i.dot", { "aria-hidden": "true" }), frozen ? "End" : "Live");
  const play = h("button.icon", { "aria-label": "Play", onclick: () => (timer ? halt() : run()) }, "▶");
  const el = h("footer.transport", { role: "group", "aria-label": "Through time" },
    h("div.buttons", null, h("button.icon", { "aria-label": "One event back", onclick: () => step(-1) }, "‹"), play, h("button.icon", { "aria-label": "One event on", onclick: () => step(1) }, "›")),
    h("div.rail", null, stripes, input, words), live);
  let due = 0;
  let timer = 0;

  input.addEventListener("input", () => { halt(); preview(Number(input.value)); });
  input.addEventListener("keydown", (event) => { if (event.key === "Escape") go(null); });

  function preview(seq) {
    clearTimeout(due);
    due = setTimeout(() => go(seq >= Number(input.max) ? null : seq), WAIT);
  }

  function step(by) {
    halt();
    const seq = Math.max(1, Math.min(Number(input.max), Number(input.value) + by));
    input.value = seq;
    go(seq >= Number(input.max) ? null : seq);
  }

  // All of it in about half a minute, whatever its length.
  function run() {
    if (!ctx.moment()) { input.value = 1; }
    play.replaceChildren("❚❚");
    play.setAttribute("aria-label", "Stop playing");
    const stride = Math.max(1, Math.round(Number(input.max) / 120));
    timer = setInterval(() => {
      const seq = Math.min(Number(input.max), Number(input.value) + stride);
      input.value = seq;
      if (seq >= Number(input.max)) { halt(); go(null); } else go(seq);
    }, 260);
  }

  function halt() {
    clearInterval(timer);
    timer = 0;
    play.replaceChildren("▶");
    play.setAttribute("aria-label", "Play");
  }

  function set(last, moment) {
    input.max = Math.max(1, last);
    if (document.activeElement !== input || !moment) input.value = moment || last;
    live.setAttribute("aria-pressed", !moment);
    el.classList.toggle("past", Boolean(moment));
  }

  async function tell(moment) {
    const last = Number(input.max);
    if (!moment) {
      show(words, `${count(last)} events`);
      input.setAttribute("aria-valuetext", `${frozen ? "The end" : "Now"}, event ${last}`);
      return;
    }
    const { events } = await get(loopPath(ctx.id, "events"), { after: moment - 1, limit: 1 });
    if (ctx.moment() !== moment) return;
    const [event] = events;
    show(words, `${count(moment)} of ${count(last)}`, event && [" · ", day(event.at), " · ", event.words]);
    input.setAttribute("aria-valuetext", event ? `Event ${moment}, ${event.words}` : `Event ${moment}`);
  }

  function paint(spans, last) {
    const parts = new Map();
    for (const one of spans) {
      const from = Math.floor((STRIPES * one.seq) / Math.max(1, last));
      const to = Math.max(from + 1, Math.floor((STRIPES * (one.ended_seq || last)) / Math.max(1, last)));
      for (let at = from; at < to; at += 1) parts.set(at, shadeOf(one.outcome));
    }
    const by = {};
    for (const [at, shade] of parts) by[shade] = `${by[shade] || ""}M${at} 0h1v1h-1z`;
    stripes.replaceChildren(...Object.entries(by).map(([shade, d]) => svg(`path.is-${shade}`, { d })));
  }

  return { el, set, tell, paint, close: halt };
}
