// All loops of the repository, and what they ask.

import { frozen, get } from "./api.js";
import { chip, h, show } from "./dom.js";
import { questionCard } from "./inbox.js";
import { stateShade, stateWords } from "./panel.js";
import { STATES, ago, count, money } from "./text.js";

const LOOK = 2000;

export function loopsView(ctx) {
  const questions = h("div");
  const list = h("div.loops");
  const head = h("p.soft");
  const el = h("main.all", { "aria-label": "Loops" }, h("h1", null, "Loops"), head, questions, list);
  let timer = 0;
  let asked = null;
  let closed = false;

  async function load() {
    clearTimeout(timer);
    try {
      const [{ loops, repository }, inbox] = await Promise.all([get("/loops"), get("/inbox")]);
      if (closed) return;
      ctx.connected(true);
      show(head, repository);
      drawQuestions(inbox.questions);
      show(list, loops.length === 0 && h("div.empty", null, h("h2", null, "No loop has run here yet"), h("p", null, "Start one with ", h("code", null, "wiggum run"), "; it appears here by itself.")),
        [...loops].sort((a, b) => Number(b.engine_alive) - Number(a.engine_alive) || String(b.updated_at).localeCompare(String(a.updated_at))).map(row));
    } catch (error) {
      ctx.failed(error);
    }
    if (!frozen && !closed) timer = setTimeout(load, document.hidden ? LOOK * 5 : LOOK);
  }

  function row(loop) {
    const { counts } = loop;
    const verified = { ...counts, done: counts.done - counts.unverified };
    const told = { ...loop, interrupted: !loop.engine_alive && !loop.termination_reason && loop.iterations > 0 };
    return h("a.card.loop", { href: `#/l/${loop.id}` },
      h("header", null, h("h2", null, loop.name), chip(stateShade(told), stateWords(told)),
        loop.questions > 0 && h("span.badge", null, `${loop.questions} waiting for you`), h("span.soft.end", null, loop.updated_at ? ago(loop.updated_at, Date.now()) : "")),
      h("p.soft", null, loop.backlog, loop.task && loop.engine_alive ? ` · works on ${loop.task}` : "", loop.waiting ? ` · ${loop.waiting}` : ""),
      h("div.stack", { role: "img", "aria-label": `${counts.done} of ${counts.total} done` }, STATES.map((state) => verified[state] > 0 && h(`i.is-${state}`, { style: { "flex-grow": verified[state] } }))),
      h("p.soft", null, `${count(counts.done)} of ${count(counts.total)} done · ${count(loop.iterations)} iterations · ${money(loop.cost_usd)}`));
  }

  function drawQuestions(found) {
    const key = found.map((one) => `${one.loop_id}${one.id}${Boolean(one.answered)}`).join();
    if (key === asked) return;
    asked = key;
    show(questions, found.map((one) => questionCard(one.loop_id, one, ctx.mayAct(), load)));
  }

  return { el, load, close: () => { closed = true; clearTimeout(timer); } };
}
