// All loops of this machine, those of the repository first, and what they ask.

import { frozen, get } from "./api.js";
import { chip, h, show } from "./dom.js";
import { questionCard } from "./inbox.js";
import { stateShade, stateWords } from "./panel.js";
import { STATES, ago, count, money } from "./text.js";

const LOOK = 2000;

export function loopsView(ctx) {
  const questions = h("div");
  const list = h("div");
  const el = h("main.all", { "aria-label": "Loops" }, h("h1", null, "Loops"), questions, list);
  let timer = 0;
  let asked = null;
  let closed = false;

  async function load() {
    clearTimeout(timer);
    try {
      const [{ loops, repository, elsewhere }, inbox] = await Promise.all([get("/loops"), get("/inbox")]);
      if (closed) return;
      ctx.connected(true);
      const others = elsewhere || [];
      drawQuestions(inbox.questions, new Map(others.flatMap((place) => place.loops.map((loop) => [loop.id, place.repository]))));
      const how = ["Start one with ", h("code", null, "wiggum run"), "; it appears here by itself."];
      const none = others.length ? h("p.soft", null, "No loop has run here yet. ", how) : h("div.empty", null, h("h3", null, "No loop has run here yet"), h("p", null, how));
      show(list, section(repository, loops, null, loops.length === 0 && none), others.map((place) => section(place.repository, place.loops, place.problem)));
    } catch (error) {
      ctx.failed(error);
    }
    if (!frozen && !closed) timer = setTimeout(load, document.hidden ? LOOK * 5 : LOOK);
  }

  // Whatever runs comes first, then what was last heard of.
  function section(repository, loops, problem, empty) {
    const order = (a, b) => Number(b.engine_alive) - Number(a.engine_alive) || String(b.updated_at).localeCompare(String(a.updated_at));
    const parts = repository.split("/");
    return h("section.place", { "aria-label": repository },
      h("h2.where", { title: repository }, h("span.soft", null, `${parts.slice(0, -1).join("/")}/`), parts.at(-1)),
      problem && h("p.note", null, problem), empty, h("div.loops", null, [...loops].sort(order).map(row)));
  }

  function row(loop) {
    const { counts } = loop;
    const verified = { ...counts, done: counts.done - counts.unverified };
    return h("a.card.loop", { href: `#/l/${loop.id}` },
      h("header", null, h("h3", null, loop.name), chip(stateShade(loop), stateWords(loop)),
        loop.questions > 0 && h("span.badge", null, `${loop.questions} waiting for you`), h("span.soft.end", null, loop.updated_at ? ago(loop.updated_at, Date.now()) : "")),
      h("p.soft", null, [loop.backlog, loop.waiting || (loop.task && loop.engine_alive && `works on ${loop.task}`)].filter(Boolean).join(" · ")),
      h("div.stack", { role: "img", "aria-label": `${counts.done} of ${counts.total} done` }, STATES.map((state) => verified[state] > 0 && h(`i.is-${state}`, { style: { "flex-grow": verified[state] } }))),
      h("p.soft", null, `${count(counts.done)} of ${count(counts.total)} done · ${count(loop.iterations)} iterations · ${money(loop.cost_usd)}`));
  }

  function drawQuestions(found, places) {
    const key = found.map((one) => `${one.loop_id}${one.id}${Boolean(one.answered)}`).join();
    if (key === asked) return;
    asked = key;
    show(questions, found.map((one) => questionCard(one.loop_id, one, ctx.mayAct(), load, [one.loop_name, places.get(one.loop_id)].filter(Boolean).join(" in "))));
  }

  return { el, load, close: () => { closed = true; clearTimeout(timer); } };
}
