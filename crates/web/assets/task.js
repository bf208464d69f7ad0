// One task in full, beside the view it was chosen in.

import { get, loopPath, patch, post } from "./api.js";
import { attemptBox } from "./attempt.js";
import { ask, chip, fact, h, say, show } from "./dom.js";
import { clock, money, shadeOf, span } from "./text.js";

export function taskBox(ctx, id, close) {
  const el = h("aside.inspector", { "aria-label": `Task ${id}`, tabindex: "-1" });
  let chosen = null;
  // What was written to the backlog from here; a loop at work reads it later.
  const written = {};

  async function load() {
    const found = await get(loopPath(ctx.id, "tasks", id), { at: ctx.moment() });
    const unread = Object.keys(written).filter((name) => String(found.task[name] ?? "") !== String(written[name]));
    const task = { ...found.task, ...Object.fromEntries(unread.map((name) => [name, written[name]])) };
    const last = found.iterations[found.iterations.length - 1];
    if (chosen === null && last) chosen = last.iteration;
    const box = h("div");
    const names = (all) => all.map((other) => h("button.link.tag", { onclick: () => ctx.openTask(other) }, other));
    show(el,
      h("header", null, h("h2", null, id), chip(found.state), h("button.icon", { onclick: close, "aria-label": "Close" }, "×")),
      h("p.lead", null, unread.includes("title") ? task.title : found.title),
      unread.length > 0 && h("p.note", null, "As the backlog has it now; the loop reads it before it goes on."),
      found.why && found.why !== found.state && h("p.soft", null, found.why),
      ctx.mayAct() && h("div.row.wrap", null,
        found.state !== "skipped" && found.state !== "done" && h("button", { onclick: () => act("skip") }, "Skip"),
        ["failed", "skipped", "done", "unverified", "parked"].includes(found.state) && h("button", { onclick: () => act("retry") }, "Try again"),
        found.state !== "running" && h("button", { onclick: () => edit(task) }, "Edit"),
        found.state === "open" && h("button", { onclick: () => move("first") }, "Do it first"),
        found.state !== "done" && found.state !== "running" && h("button", { onclick: () => mark("done") }, "Mark as done")),
      task.description && task.description !== found.title && h("p.text", null, task.description),
      (task.criteria || []).length > 0 && [h("h4", null, "Done when"), h("ul", null, task.criteria.map((one) => h("li", null, one.text, one.check && h("code", null, ` ${one.check}`))))],
      h("dl.facts", null, fact("attempts", found.iterations.length), fact("cost", money(found.cost_usd)),
        task.agent && fact("agent", task.agent), task.phase > 1 && fact("phase", task.phase)),
      found.waits_on.length > 0 && h("p.soft", null, "Waits on ", names(found.waits_on)),
      found.waits_on.length === 0 && (task.depends_on || []).length > 0 && h("p.soft", null, "Comes after ", names(task.depends_on)),
      found.dependents.length > 0 && h("p.soft", null, "Waited on by ", names(found.dependents.slice(0, 12))),
      found.guidance.length > 0 && [h("h4", null, "People said"), found.guidance.map((said) => h("blockquote", null, said))],
      found.iterations.length > 0 && h("h3", null, "Attempts"),
      h("div.tabs.small", { role: "tablist", "aria-label": "Attempts" }, found.iterations.slice(-12).map((attempt) =>
        h("button", { role: "tab", "aria-selected": attempt.iteration === chosen, title: `${attempt.outcome}, ${clock(attempt.started_at)}`, onclick: () => { chosen = attempt.iteration; load().catch(fail); } },
          h(`i.dot.is-${shadeOf(attempt.outcome)}`, { "aria-hidden": "true" }), `#${attempt.iteration}`,
          h("span.soft", null, attempt.ended_at ? ` ${span(Date.parse(attempt.ended_at) - Date.parse(attempt.started_at))}` : " now")))),
      box);
    if (chosen !== null) box.append(attemptBox(ctx, chosen));
  }

  async function act(what) {
    try { say((await post(loopPath(ctx.id, "tasks", id, what))).message); } catch (error) { say(`${error.message}. ${error.hint || ""}`); }
    load().catch(fail);
  }
  async function change(body, words) {
    try {
      say((await patch(loopPath(ctx.id, "tasks", id), body)).message);
      Object.assign(written, words);
    } catch (error) { say(`${error.message}. ${error.hint || ""}`); }
    load().catch(fail);
  }
  // Only what was changed is sent: somebody else may have changed the rest.
  async function edit(task) {
    const before = { title: task.title, description: task.description || "", priority: String(task.priority || 0), depends_on: (task.depends_on || []).join(", ") };
    const said = await ask(`Edit ${id}`, [
      { name: "title", label: "What is to be done", required: true, value: before.title },
      { name: "description", label: "More about it", long: true, value: before.description },
      { name: "depends_on", label: "Waits on (ids, with commas)", value: before.depends_on },
      { name: "priority", label: "Priority", value: before.priority, hint: "Where the backlog has one", number: true },
    ], "Save");
    if (!said) return;
    const body = Object.fromEntries(Object.entries(said).filter(([name, value]) => value !== before[name]));
    if (body.depends_on !== undefined) body.depends_on = body.depends_on.split(",").map((one) => one.trim()).filter(Boolean);
    if (body.priority !== undefined) body.priority = Math.trunc(Number(body.priority));
    if (Object.keys(body).length > 0) change(body, body);
  }
  const move = (place) => change({ place });
  const mark = (status) => change({ status });
  const fail = (error) => show(el, h("header", null, h("h2", null, id), h("button.icon", { onclick: close, "aria-label": "Close" }, "×")), h("p.note", null, error.message));

  load().then(() => el.focus({ preventScroll: true })).catch(fail);
  return { el, id, load: () => load().catch(fail), change({ tasks, iterations }) {
    if (!ctx.moment() && (tasks.some((row) => row.id === id) || iterations.some((one) => one.task === id))) {
      // Somebody who follows the newest attempt goes on with it.
      if (iterations.some((one) => one.task === id && one.iteration > chosen)) chosen = null;
      load().catch(fail);
    }
  } };
}
