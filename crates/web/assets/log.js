// What the agent says and does, as it comes; tools are folded.

import { frozen, get, loopPath } from "./api.js";
import { h, show } from "./dom.js";
import { count, span } from "./text.js";

const POLL = 600;
// What a page holds at a time; the transcript has it all.
const MOST_LINES = 3000;

export function logView(ctx, wanted) {
  let iteration = wanted || null;
  let total = 0;
  let first = 0;
  let timer = 0;
  let closed = false;
  let follow = true;
  const head = h("span.soft");
  const earlier = h("button", { onclick: () => more(), hidden: true }, "Earlier");
  const follows = h("button", { "aria-pressed": "true", onclick: () => { follow = !follow; follows.setAttribute("aria-pressed", follow); if (follow) toEnd(); } }, "Follow");
  const which = h("select", { "aria-label": "Iteration", onchange: () => { iteration = Number(which.value) || null; begin(); } });
  const lines = h("div.log", { role: "log", "aria-label": "What the agent says", tabindex: "0", "aria-live": "off" });
  lines.addEventListener("scroll", () => {
    const end = lines.scrollTop + lines.clientHeight >= lines.scrollHeight - 40;
    if (end !== follow) { follow = end; follows.setAttribute("aria-pressed", follow); }
  }, { passive: true });
  const el = h("div.list-view", null, h("div.tools", null, which, follows, earlier, head), lines);

  async function begin() {
    clearTimeout(timer);
    const all = await get(loopPath(ctx.id, "iterations"), { limit: 0 });
    const { iterations } = await get(loopPath(ctx.id, "iterations"), { from: Math.max(0, all.total - 200), limit: 200 });
    const at = ctx.moment();
    const known = iterations.filter((one) => !at || one.seq <= at);
    const newest = known[known.length - 1];
    show(which, h("option", { value: "" }, newest ? `newest (#${newest.iteration} ${newest.task})` : "none yet"),
      [...known].reverse().map((one) => h("option", { value: one.iteration }, `#${one.iteration} ${one.task}, attempt ${one.attempt}: ${one.outcome}`)));
    which.value = iteration || "";
    show(lines);
    [total, first] = [0, 0];
    if (!newest) { show(head, "No agent has started yet."); return; }
    await read(iteration || newest.iteration, undefined);
    toEnd();
    schedule(iteration || newest.iteration);
  }

  async function read(number, from) {
    const part = await get(loopPath(ctx.id, "iterations", number, "transcript"), { from, limit: 1000 });
    if (closed) return part;
    if (from === undefined) first = part.from;
    total = part.from + part.entries.length;
    lines.append(...part.entries.map(entry));
    while (lines.childElementCount > MOST_LINES) { lines.firstElementChild.remove(); first += 1; }
    earlier.hidden = first === 0;
    show(head, part.total ? `${count(part.total)} entries` : "It has not said anything yet.", part.running && " · at work");
    if (follow) toEnd();
    return part;
  }

  function schedule(number) {
    if (closed || frozen) return;
    timer = setTimeout(async () => {
      try {
        const part = await read(number, total);
        if (part.running || part.total > total) schedule(number);
      } catch { schedule(number); }
    }, POLL);
  }

  async function more() {
    const number = iteration || Number((which.options[1] || {}).value);
    const from = Math.max(0, first - 500);
    const part = await get(loopPath(ctx.id, "iterations", number, "transcript"), { from, limit: first - from });
    const before = lines.scrollHeight;
    lines.prepend(...part.entries.map(entry));
    lines.scrollTop += lines.scrollHeight - before;
    first = from;
    earlier.hidden = first === 0;
  }

  function entry({ ms, kind, name, text }) {
    const at = h("time.soft", null, span(ms));
    if (kind === "tool_call" || kind === "tool_result" || kind === "tool_error") {
      const mark = { tool_call: "→", tool_result: "←", tool_error: "✗" }[kind];
      const head = text.split("\n", 1)[0].slice(0, 160);
      return h(`details.entry.${kind}`, null, h("summary", null, at, h("span.mark", { "aria-hidden": "true" }, mark), name && h("b", null, name), h("code", null, head)), h("pre", null, text));
    }
    if (kind === "cut") return h("p.entry.note", null, "The transcript may not hold more; the rest was left out.");
    return h(`div.entry.${kind}`, null, at, h("pre", null, text));
  }

  function toEnd() { lines.scrollTop = lines.scrollHeight; }

  return {
    el,
    load: begin,
    change({ iterations }) {
      if (ctx.moment() || iteration || !iterations.length) return;
      const newest = iterations[iterations.length - 1];
      if (newest.outcome === "under way" && String(newest.iteration) !== (which.options[1] || {}).value) begin();
    },
    close: () => { closed = true; clearTimeout(timer); },
  };
}
