// All tasks, however many.

import { get, loopPath } from "./api.js";
import { chip, h } from "./dom.js";
import { STATES, counted, money } from "./text.js";
import { Pages, virtual } from "./virtual.js";

export function tasksView(ctx) {
  const search = h("input", { type: "search", placeholder: "Search tasks", "aria-label": "Search tasks", oninput: () => { clearTimeout(search.timer); search.timer = setTimeout(load, 150); } });
  const state = h("select", { "aria-label": "State", onchange: () => load() }, h("option", { value: "" }, "every state"), STATES.map((one) => h("option", { value: one }, one)));
  const total = h("span.soft", { "aria-live": "polite" });
  const source = new Pages(async (from, limit) => {
    const found = await get(loopPath(ctx.id, "tasks"), { from, limit, at: ctx.moment(), search: search.value, state: state.value });
    total.textContent = counted(found.total, "task");
    return { total: found.total, rows: found.tasks };
  });
  const list = virtual({
    label: "Tasks", height: 44, source, rowId: "task",
    render: (task) => h("div.task", null, h("span.where", null, chip(task.state)), h("b.id", null, task.id), h("span.title", null, task.title),
      h("span.soft.why", null, task.why === task.state || task.why === "ready" ? "" : task.why), h("span.soft.end", null, task.attempts ? `${task.attempts}×` : "", task.cost_usd ? ` ${money(task.cost_usd)}` : "")),
    open: (task) => ctx.openTask(task.id),
  });
  const load = () => source.reload();
  return {
    el: h("div.list-view", null, h("div.tools", null, search, state, total), list.el),
    load,
    change({ tasks }) {
      if (ctx.moment()) return;
      if (state.value) load(); else source.update("id", tasks);
    },
    close: list.close,
  };
}
