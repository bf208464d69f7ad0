// What it cost, how that came about, and what the rest will cost.

import { get, loopPath } from "./api.js";
import { chart } from "./charts.js";
import { card, h, show } from "./dom.js";
import { count, counted, money, tokens } from "./text.js";

export function costView(ctx) {
  const el = h("div.panel");
  let by = "task";

  async function load() {
    const moment = ctx.moment();
    const report = await get(loopPath(ctx.id, "cost"), { by, at: moment });
    if (moment !== ctx.moment()) return;
    const { total, over_time: points, burn_down: left, forecast } = report;
    show(el, h("div.cards.wide", null,
      card("Cost over time", costChart(report), forecast && forecast.remaining_usd
        ? h("p.soft", null, `${counted(forecast.tasks_left, "task")} left: ${money(forecast.remaining_usd.low)} to ${money(forecast.remaining_usd.high)} more in four cases of five, as ${counted(forecast.samples, "completed task")} tell.`)
        : h("p.soft", null, points.length ? "No forecast: no task was completed with figures yet, or nothing is left." : "No agent told what it used yet.")),
      left.length > 1 && card("Tasks left", leftChart(left, ctx.status(), moment)),
      card("In detail",
        h("div.tabs.small", { role: "tablist", "aria-label": "Cost by" }, ["task", "agent", "model", "day"].map((one) => h("button", { role: "tab", "aria-selected": one === by, onclick: () => { by = one; load(); } }, `by ${one}`))),
        h("div.scroll", { tabindex: "0", role: "region", "aria-label": "Cost in detail" }, h("table", null,
          h("thead", null, h("tr", null, ["", "calls", "read", "written", "from cache", "cost"].map((name) => h("th", { scope: "col" }, name)))),
          h("tbody", null, [...report.rows].sort((a, b) => (b.cost_usd || 0) - (a.cost_usd || 0)).slice(0, 200).map((row) => line(row.key, row)), line("all", total)))))));
  }

  const line = (name, spent) => h("tr", null, h("th", { scope: "row" }, name), h("td", null, count(spent.calls)), h("td", null, tokens(spent.input_tokens)),
    h("td", null, tokens(spent.output_tokens)), h("td", null, tokens(spent.cache_read_tokens)), h("td", null, spent.cost_usd === null ? "not told" : money(spent.cost_usd)));

  return {
    el,
    load,
    event(row) { if (!ctx.moment() && (row.type === "agent_ended" || row.type === "charged")) load().catch(() => {}); },
    close() {},
  };
}

function costChart({ over_time: told, forecast, burn_down: left, budgets }) {
  if (!told.length) return null;
  const points = told.map(({ at: when, cost_usd }) => [Date.parse(when), cost_usd]);
  const [first, last] = [points[0][0], points[points.length - 1]];
  const rest = forecast && forecast.total_usd;
  // As fast as so far, the rest takes so long.
  const done = left.length ? left[0].tasks - left[left.length - 1].tasks : 0;
  const pace = done > 0 ? (last[0] - first) / done : 0;
  const end = rest ? last[0] + Math.max(pace * forecast.tasks_left, (last[0] - first) * 0.15, 1000) : last[0];
  const limits = budgets.filter(({ unit }) => unit === "usd").map(({ limit, scope }) => ({ value: limit, label: `budget of the ${scope}` }));
  const highest = Math.max(last[1], rest ? rest.high : 0) * 1.08 || 1;
  return chart({
    label: `Cost over time: ${money(last[1])}${rest ? `, in the end between ${money(rest.low)} and ${money(rest.high)}` : ""}`,
    from: first, to: Math.max(end, first + 1000), top: highest, y: money, limits,
    bands: rest ? [{ kind: "forecast", upper: [last, [end, rest.high]], lower: [last, [end, rest.low]] }] : [],
    lines: [{ kind: "cost", stepped: true, points }, ...(rest ? [{ kind: "likely", points: [last, [end, rest.expected]] }] : [])],
  });
}

function leftChart(left, status, moment) {
  const points = left.map(({ at, tasks }) => [Date.parse(at), tasks]);
  const [first, last] = [points[0][0], points[points.length - 1]];
  // What has not changed since is still so.
  const end = Math.max(last[0], first + 1000, status && (moment || !status.engine_alive) ? Date.parse(status.updated_at) : Date.now());
  return chart({
    label: `Tasks left over time: ${last[1]} ${moment ? "then" : "now"}`, from: first, to: end,
    top: Math.max(...points.map(([, tasks]) => tasks)), y: (n) => count(Math.round(n)), height: 160,
    lines: [{ kind: "left", stepped: true, points: [...points, [end, last[1]]] }],
  });
}
