// What can be done to a loop, by button and by key.

import { loopPath, post } from "./api.js";
import { ask, h, say, show } from "./dom.js";

export function controls(ctx) {
  const el = h("div.controls", { role: "group", "aria-label": "Controls" });
  let drawn = "";

  async function act(what, body) {
    try {
      const told = await post(loopPath(ctx.id, what), body);
      say(told.message || `${told.id} added`);
    } catch (error) {
      say(`${error.message}. ${error.hint || ""}`);
    }
    ctx.refresh();
  }

  async function nudge() {
    const said = await ask("Say something to the agent", [{ name: "text", label: "It hears it after its next tool call", long: true, required: true }], "Send");
    if (said) act("nudge", said);
  }

  async function stop() {
    if (await ask("End this run?", [], "End the run", true)) act("stop");
  }

  async function add() {
    const said = await ask("Add a task", [
      { name: "title", label: "What is to be done", required: true },
      { name: "description", label: "More about it", long: true },
      { name: "criteria", label: "Done when (one in each line)", long: true },
      { name: "depends_on", label: "Waits on (ids, with commas)" },
      { name: "id", label: "Id", hint: "Left empty: the next of its kind" },
    ], "Add");
    if (!said) return;
    const list = (text, by) => text.split(by).map((one) => one.trim()).filter(Boolean);
    act("tasks", { ...said, criteria: list(said.criteria, "\n"), depends_on: list(said.depends_on, ",") });
  }

  function draw() {
    const status = ctx.status();
    const key = `${status?.engine_alive} ${status?.state} ${ctx.mayAct()} ${ctx.moment()} ${Boolean(status?.current)}`;
    if (!status || key === drawn) return;
    drawn = key;
    if (!ctx.mayAct()) { show(el); return; }
    const runs = status.engine_alive;
    show(el,
      runs && (status.state === "paused"
        ? h("button.primary", { onclick: () => act("resume") }, "Go on")
        : h("button", { onclick: () => act("pause"), title: "The agent finishes first (p)" }, "Pause")),
      runs && status.current && h("button", { onclick: nudge, title: "Nudge (n)" }, "Nudge"),
      runs && h("button", { onclick: stop }, "Stop"),
      h("button", { onclick: add, title: "Add a task (a)" }, "Add task"));
  }

  return { el, draw, keys: { n: nudge, a: add, p: () => act(ctx.status()?.state === "paused" ? "resume" : "pause") } };
}
