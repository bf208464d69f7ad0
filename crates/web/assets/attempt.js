// One attempt: verdict, evidence, what it changed, what the agent said last.

import { get, loopPath } from "./api.js";
import { chip, h, say, show } from "./dom.js";
import { colour, filesOf } from "./syntax.js";
import { counted, shadeOf, span } from "./text.js";

// Lines of a diff that are shown before somebody asks for more.
const SHOWN = 400;

export function attemptBox(ctx, iteration) {
  const el = h("div.attempt", { "aria-busy": "true" });
  load().catch((error) => show(el, h("p.note", null, error.message)));

  async function load() {
    const found = await get(loopPath(ctx.id, "iterations", iteration), { at: ctx.moment() });
    const took = found.ended_at && found.started_at ? span(Date.parse(found.ended_at) - Date.parse(found.started_at)) : "";
    show(el,
      h("div.row.wrap", null,
        chip(shadeOf(found.outcome), found.outcome), h("span.soft", null, [found.agent, found.model, took].filter(Boolean).join(" · ")),
        h("button.link", { onclick: () => ctx.openLog(iteration) }, "What the agent did")),
      found.reasons.map((reason) => h("blockquote", null, reason)),
      found.claim && h("p.soft", null, "Claims: ", h("q", null, found.claim)),
      found.evidence.length > 0 && h("h4", null, "Evidence"),
      found.evidence.map((evidence) => h("details.evidence", { open: !evidence.passed },
        h("summary", null, chip(evidence.passed ? "done" : "failed", evidence.passed ? "passed" : "failed"),
          h("code", null, evidence.command || evidence.name), h("span.soft", null, `${evidence.exit}, ${span(evidence.duration_ms)}`)),
        textBox(ctx, evidence.output, "It printed nothing."))),
      found.flags.length > 0 && h("h4", null, "Flagged"),
      found.flags.map((flag) => h("p.flag", null, h("b", null, flag.kind.replaceAll("_", " ")), " ", flag.what, flag.detail && `: ${flag.detail}`)),
      h("h4", null, "Changes", found.changed_total > 0 && h("span.soft", null, ` ${counted(found.changed_total, "path")}`)),
      diffBox(ctx, iteration),
      found.message && found.message.bytes > 0 && [h("h4", null, "Last words"), textBox(ctx, found.message, "")],
      found.prompt && found.prompt.bytes > 0 && h("details", null, h("summary", null, "The prompt it was given"), textBox(ctx, found.prompt, "")));
    el.setAttribute("aria-busy", "false");
  }
  return el;
}

// A stored text: its end, and all of it for the asking.
function textBox(ctx, { sha256, bytes, end }, empty) {
  if (!end) return h("p.soft", null, empty);
  const text = h("pre", { tabindex: "0" }, end);
  const more = bytes > new TextEncoder().encode(end).length && sha256 && h("button.link", { onclick: all }, "Show all of it");
  async function all() {
    try {
      const { lines, total } = await get(loopPath(ctx.id, "texts", sha256));
      show(text, lines.join("\n"), total > lines.length && `\n… ${counted(total - lines.length, "line")} more`);
      more.remove();
    } catch (error) { say(error.message); }
  }
  return h("div", null, more, text);
}

export function diffBox(ctx, iteration) {
  const el = h("div.diff", null, h("p.soft", null, "…"));
  (async () => {
    let lines = [];
    let total = 0;
    async function more() {
      const part = await get(loopPath(ctx.id, "iterations", iteration, "diff"), { from: lines.length, limit: lines.length ? 4000 : SHOWN });
      lines = lines.concat(part.lines);
      total = part.total;
      draw(part.of);
    }
    function draw(of) {
      const files = filesOf(lines);
      show(el, files.length === 0 && h("p.soft", null, "Nothing was changed."), h("p.soft", null, of),
        files.map((file) => h("details.file", { open: files.length < 8 },
          h("summary", null, h("code", null, file.path), h("span.plus", null, `+${file.added}`), h("span.minus", null, `−${file.removed}`)),
          h("div.lines", { tabindex: "0", role: "region", "aria-label": `Changes of ${file.path}` },
            file.lines.map((line) => h(`div.dl.${line.kind}`, null,
              h("span.no", { "aria-hidden": "true" }, line.old ?? ""), h("span.no", { "aria-hidden": "true" }, line.now ?? ""),
              h("span.sign", null, { added: "+", removed: "−" }[line.kind] || " "),
              h("code", null, line.kind === "hunk" || line.kind === "note" ? line.text : colour(line.text, file.path))))))),
        total > lines.length && h("button", { onclick: () => more().catch((error) => say(error.message)) }, `${counted(total - lines.length, "line")} more`));
    }
    await more();
  })().catch((error) => show(el, h("p.soft", null, error.message)));
  return el;
}
