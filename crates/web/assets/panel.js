// The instruments: where the loop stands at a glance.

import { get, loopPath } from "./api.js";
import { bar, card, chip, fact, h, show } from "./dom.js";
import { questionCard } from "./inbox.js";
import { STATES, ago, clock, count, money, shadeOf, span, tokens } from "./text.js";

const NEWEST = 14;

export function panelView(ctx) {
  const questions = h("div");
  const progress = h("div");
  const now = h("div");
  const spent = h("div");
  const run = h("div");
  const recent = h("div");
  const news = h("ol.news");
  const el = h("div.panel", null, questions,
    h("div.cards", null, progress, now, spent, run, recent, card("What happened last", news)));
  let rows = [];
  let forecast = null;
  let asked = "";

  async function load() {
    draw();
    const at = ctx.moment();
    const [events, cost] = await Promise.all([
      get(loopPath(ctx.id, "events"), { before: at ? at + 1 : null, limit: NEWEST }),
      get(loopPath(ctx.id, "cost"), { at }),
    ]);
    rows = events.events;
    forecast = cost.forecast;
    draw();
    drawNews();
  }

  function draw() {
    const status = ctx.status();
    if (!status) return;
    drawQuestions(status);
    const counts = status.counts;
    const verified = { ...counts, done: counts.done - counts.unverified };
    show(progress, card("Progress",
      h("p.big", null, h("b", null, count(counts.done)), h("span.soft", null, ` of ${count(counts.total)} done`)),
      h("div.stack", { role: "img", "aria-label": STATES.map((state) => `${verified[state] || 0} ${state}`).join(", ") },
        STATES.map((state) => verified[state] > 0 && h(`i.is-${state}`, { style: { "flex-grow": verified[state] } }))),
      h("p.legend", null, STATES.filter((state) => verified[state] > 0).map((state) => h(`span.is-${state}`, null, h("i.dot"), `${count(verified[state])} ${state}`)))));
    drawNow(status);
    const budget = status.budgets.find(({ unit }) => unit === "usd") || status.budgets[0];
    const rest = forecast && forecast.total_usd && status.counts.open > 0 ? forecast.total_usd : null;
    show(spent, card("Cost",
      h("p.big", null, h("b", null, money(status.total_cost)), budget && budget.unit === "usd" && h("span.soft", null, ` of ${money(budget.limit)}`)),
      budget && bar(budget.spent, budget.limit, budget.spent / budget.limit > 0.8 ? "failed" : "running", `budget of the ${budget.scope}`),
      rest && h("p.soft", null, `In the end ${money(rest.low)} to ${money(rest.high)}, likely ${money(rest.expected)}`),
      h("dl.facts", null, fact("read", tokens(status.total_input_tokens)), fact("written", tokens(status.total_output_tokens)),
        status.unpriced_tokens > 0 && fact("unpriced", tokens(status.unpriced_tokens), "Tokens whose cost nobody told")),
      h("button.link", { onclick: () => ctx.go("cost") }, "Cost over time")));
    show(run, card("Run",
      h("dl.facts", null,
        fact("iterations", status.max_iterations ? `${count(status.current_iteration)} of ${count(status.max_iterations)}` : count(status.current_iteration)),
        fact("at work", span(status.active_seconds * 1000)),
        fact("agent", status.agent || "none yet"), fact("backlog", status.backlog),
        fact("breaker", status.breaker.state === "closed" ? "closed" : `${status.breaker.state}: ${status.breaker.why || ""}`),
        fact("run", status.run)),
      status.detail && h("p.note", null, h("b", null, status.termination_reason.replaceAll("_", " ")), ". ", status.detail)));
    show(recent, card("Last iterations", status.iterations.length === 0 && h("p.soft", null, "None has ended yet."),
      h("ol.recent", null, [...status.iterations].reverse().slice(0, 8).map((one) => h("li", null,
        h("button.link", { onclick: () => ctx.openTask(one.task) }, h(`i.dot.is-${shadeOf(one.outcome)}`, { "aria-hidden": "true" }), one.task),
        h("span.soft", null, one.outcome), h("span.soft.end", null, span(Date.parse(one.completed_at) - Date.parse(one.started_at))))))));
  }

  function drawNow(status) {
    const { health, waiting } = status;
    // Nobody works on what a dead engine left.
    const current = status.interrupted ? null : status.current;
    const then = ctx.moment() ? Date.parse(status.updated_at) : Date.now();
    const stages = ["agent", "checks", "landing"];
    show(now, card("Now", current ? [
      h("p.big", null, h("button.link", { onclick: () => ctx.openTask(current.task) }, current.task)),
      h("p.text.two", null, current.title),
      h("ol.stages", { "aria-label": `Stage: ${current.stage}` }, stages.map((stage) =>
        h(`li${stage === current.stage ? ".now" : stages.indexOf(stage) < stages.indexOf(current.stage) ? ".past" : ""}`, null, stage))),
      h("dl.facts", null, fact("attempt", current.attempt), fact("since", h("span", { "data-since": current.started_at }, span(then - Date.parse(current.started_at)))),
        health && fact("agent is", h(`span.is-${{ healthy: "done", degraded: "parked", stuck: "failed", failing: "failed" }[health.health] || "open"}`, null, health.health)),
        health && fact("last progress", ctx.moment() ? clock(health.last_beat) : ago(health.last_beat, Date.now()))),
    ] : [h("p.big", null, chip(stateShade(status), stateWords(status))), h("p.soft", null, waiting || (status.engine_alive || ctx.moment() ? "Between two tasks." : status.interrupted ? "Nobody is at work: `wiggum run` goes on." : "Nobody is at work."))]));
  }

  function drawQuestions(status) {
    const shown = ctx.moment() ? [] : status.questions;
    const key = `${shown.map(({ id }) => id)} ${ctx.mayAct()}`;
    // Somebody may be writing an answer: what is the same stays.
    if (key === asked) return;
    asked = key;
    show(questions, shown.map((question) => questionCard(ctx.id, question, ctx.mayAct(), () => ctx.refresh())));
  }

  function drawNews() {
    show(news, [...rows].reverse().map((row) => h("li", null, h("time.soft", { datetime: row.at }, clock(row.at)), h("span", null, row.words))));
  }

  const tick = setInterval(() => {
    if (ctx.moment()) return;
    const node = el.querySelector("[data-since]");
    if (node) show(node, span(Date.now() - Date.parse(node.dataset.since)));
  }, 1000);

  return {
    el,
    load,
    status: draw,
    event(row) {
      if (ctx.moment()) return;
      rows = [...rows, row].slice(-NEWEST);
      drawNews();
    },
    close: () => clearInterval(tick),
  };
}

const ACTIVITY_WORDS = { blocked: "waits for a person", died: "its engine died", restored: "back at a checkpoint" };
const ACTIVITY_SHADES = {
  not_started: "open", running: "running", waiting: "open", blocked: "parked", paused: "parked", interrupted: "parked", died: "failed",
  person_needed: "parked", answered: "parked", completed: "done", failed: "failed", terminated: "skipped", restored: "open",
};

// What a loop does, in a word or two.
export function stateWords(status) {
  if (status.activity === "answered") return "answered: the next run goes on";
  if (status.termination_reason) return status.termination_reason.replaceAll("_", " ");
  if (status.activity === "running") return status.state;
  return ACTIVITY_WORDS[status.activity] || status.activity.replaceAll("_", " ");
}

export function stateShade(status) {
  return ACTIVITY_SHADES[status.activity] || "open";
}
