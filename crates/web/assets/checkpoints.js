// Checkpoints: to look at the loop as it was, and how to go back to it.

import { get, loopPath } from "./api.js";
import { h } from "./dom.js";
import { counted, day } from "./text.js";
import { Pages, virtual } from "./virtual.js";

export function checkpointsView(ctx) {
  const total = h("span.soft");
  const source = new Pages(async (from, limit) => {
    const found = await get(loopPath(ctx.id, "checkpoints"), { from, limit });
    total.textContent = counted(found.total, "checkpoint");
    return { total: found.total, rows: found.checkpoints };
  });
  const list = virtual({
    label: "Checkpoints", height: 44, source, rowId: "checkpoint", open: (row) => ctx.goTo(row.seq),
    render: (row) => h("div.checkpoint", null, h("code.id", null, row.id.slice(0, 13)), h("time.soft", { datetime: row.at }, day(row.at)),
      h("span.title", null, row.task ? `after iteration ${row.iteration}, ${row.task}` : `iteration ${row.iteration}`, row.by && `, asked for by ${row.by}`),
      h("code.soft.end", { title: row.sha256 }, row.sha256.slice(0, 10))),
  });
  return {
    el: h("div.list-view", null, h("div.tools", null, total, h("span.soft", null, "Choose one to see the loop as it was. `wiggum checkpoint restore ID` goes back to it.")), list.el),
    load: () => source.reload(),
    event(row) { if (row.type === "checkpointed" && !ctx.moment()) source.reload(); },
    close: list.close,
  };
}
