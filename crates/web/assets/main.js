// The page: where we are, what is shown there, and what is the same everywhere.

import { frozen, get, loopPath } from "./api.js";
import { checkpointsView } from "./checkpoints.js";
import { controls } from "./controls.js";
import { costView } from "./cost.js";
import { chip, h, say, show } from "./dom.js";
import { eventsView } from "./events.js";
import { graphView } from "./graph.js";
import { Live } from "./live.js";
import { logView } from "./log.js";
import { loopsView } from "./loops.js";
import { panelView, stateShade, stateWords } from "./panel.js";
import { slider } from "./slider.js";
import { taskBox } from "./task.js";
import { tasksView } from "./tasks.js";
import { ago } from "./text.js";
import { timelineView } from "./timeline.js";

const VIEWS = [
  ["panel", "Panel", panelView], ["tasks", "Tasks", tasksView], ["graph", "Graph", graphView], ["timeline", "Timeline", timelineView],
  ["log", "Log", logView], ["cost", "Cost", costView], ["events", "Events", eventsView], ["checkpoints", "Checkpoints", checkpointsView],
];

const app = document.getElementById("app");
let session = { read_only: true };
let page = null;

// #/ is all loops, #/l/ID/VIEW?task=…&at=…&run=… one of them.
function address() {
  const [path, query] = location.hash.replace(/^#\/?/, "").split("?");
  const [kind, id, view] = path.split("/").map(decodeURIComponent);
  const said = new URLSearchParams(query || "");
  return { id: kind === "l" ? id : null, view: view || "panel", task: said.get("task"), at: Number(said.get("at")) || null, run: Number(said.get("run")) || null };
}

function link(id, { view, task, at, run }) {
  const said = new URLSearchParams(Object.entries({ task, at, run }).filter(([, value]) => value));
  return `#/l/${encodeURIComponent(id)}/${view}${String(said) ? `?${said}` : ""}`;
}

function dot() {
  const el = h("span.connection", { role: "status" });
  return { el, set(connected) { el.className = `connection ${connected ? "on" : connected === null ? "" : "off"}`; show(el, h("i.dot"), frozen ? "a file" : connected ? "live" : connected === null ? "connecting" : "no connection, trying again"); } };
}

function themeButton() {
  const root = document.documentElement;
  const read = () => { try { return localStorage.getItem("theme"); } catch { return null; } };
  if (read()) root.dataset.theme = read();
  return h("button.icon", { "aria-label": "Light or dark", title: "Light or dark", onclick: () => {
    const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
    root.dataset.theme = dark ? "light" : "dark";
    try { localStorage.setItem("theme", root.dataset.theme); } catch { /* then it is for this page only */ }
  } }, "◐");
}

function header(...parts) {
  return h("header.top", null, h("a.brand", { href: "#/", "aria-label": "Wiggum, all loops" }, h("i.logo", { "aria-hidden": "true" }), "Wiggum"), ...parts,
    session.read_only && !frozen && h("span.tag", null, "only looking"), themeButton());
}

function allLoops() {
  const connection = dot();
  const view = loopsView({ mayAct: () => !session.read_only, connected: (on) => connection.set(on), failed: (error) => { connection.set(false); refuse(error); } });
  document.title = "Wiggum";
  show(app, header(h("span.end"), connection.el), view.el);
  view.load();
  return { key: "all", move() {}, close: () => view.close() };
}

function oneLoop(id) {
  const live = new Live(id);
  const connection = dot();
  const state = h("span");
  const title = h("h1");
  const repository = h("span.place-name.soft");
  const tabs = h("nav.tabs", { role: "tablist", "aria-label": "Views" });
  const place = h("main.view", { tabindex: "-1" });
  const side = h("div.side");
  let where = address();
  let then = null;
  let view = null;
  let box = null;

  const ctx = {
    id,
    moment: () => where.at,
    status: () => (where.at ? then : live.status),
    mayAct: () => !session.read_only && !frozen && !where.at,
    openTask: (task) => { location.hash = link(id, { ...where, task }); },
    openLog: (run) => { location.hash = link(id, { ...where, view: "log", run }); },
    goTo: (at) => { location.hash = link(id, { ...where, at }); },
    go: (name) => { location.hash = link(id, { ...where, view: name, run: null }); },
    refresh: () => live.refresh().catch(() => {}),
  };
  const time = slider(ctx, (at) => history.replaceState(null, "", link(id, { ...where, at })) || move());
  const buttons = controls(ctx);
  connection.set(frozen ? true : null);
  show(app, header(h("div.name", null, title, repository, state), buttons.el, connection.el), tabs, h("div.stage", null, place, side), time.el);

  function drawHead() {
    const status = ctx.status() || live.status;
    if (!status) return;
    // Loops of several repositories often have the same name.
    const place = (status.repository || "").split("/").at(-1);
    document.title = `${status.counts.done}/${status.counts.total} ${[status.name, place].filter(Boolean).join(" · ")} · Wiggum`;
    show(title, status.name);
    show(repository, place && `in ${place}`);
    repository.title = status.repository || "";
    show(state, chip(stateShade(status), stateWords(status)), live.status.questions.length > 0 && !where.at && h("a.badge", { href: link(id, { ...where, view: "panel" }) }, live.status.questions.length, h("span.more", null, " waiting for you")));
    buttons.draw();
    time.set(live.status.last_seq, where.at);
  }

  function drawTabs() {
    show(tabs, VIEWS.map(([name, label], at) => h("a", { role: "tab", href: link(id, { ...where, view: name, run: null }), "aria-selected": name === where.view, title: `${label} (${at + 1})` }, label)));
  }

  function openView() {
    view?.close();
    const [, label, make] = VIEWS.find(([name]) => name === where.view) || VIEWS[0];
    view = make(ctx, where.run);
    place.setAttribute("aria-label", label);
    show(place, view.el);
    load();
  }

  function openBox() {
    box = where.task ? taskBox(ctx, where.task, () => { location.hash = link(id, { ...where, task: null }); }) : null;
    show(side, box && box.el);
    side.scrollTop = 0;
    side.classList.toggle("open", Boolean(box));
  }

  const load = () => view.load().catch((error) => say(error.message));

  async function move(all) {
    const before = where;
    where = address();
    const [moved, turned] = [all || where.at !== before.at, all || where.view !== before.view || where.run !== before.run];
    drawTabs();
    if (moved && where.at) {
      const at = where.at;
      try {
        const found = await get(loopPath(id), { at });
        if (where.at !== at) return;
        then = found;
      } catch (error) { say(error.message); }
    }
    drawHead();
    if (moved) time.tell(where.at).catch(() => {});
    if (turned) openView(); else if (moved) { view.status?.(); load(); }
    if (all || where.task !== before.task) openBox(); else if (moved) box?.load();
  }

  let painted = 0;
  async function paint() {
    if (Date.now() - painted < 1500) return;
    painted = Date.now();
    const { total } = await get(loopPath(id, "iterations"), { limit: 0 });
    const { iterations } = await get(loopPath(id, "iterations"), { from: Math.max(0, total - 5000), limit: 5000 });
    time.paint(iterations, live.status.last_seq);
  }

  live.on((kind, data) => {
    if (kind === "status") { drawHead(); if (!where.at) view?.status?.(); if (!where.at) time.tell(null); }
    if (kind === "event") view?.event?.(data);
    if (kind === "change") { view?.change?.(data); box?.change(data); if (data.iterations.length) paint().catch(() => {}); }
    if (kind === "reload" && !where.at && view) load();
    if (kind === "connection") connection.set(data);
  });
  live.start().then(() => { move(true); app.setAttribute("aria-busy", "false"); paint().catch(() => {}); }).catch(refuse);

  const keys = (event) => {
    if (event.target.closest?.("input, textarea, select, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    const number = Number(event.key);
    if (number >= 1 && number <= VIEWS.length) ctx.go(VIEWS[number - 1][0]);
    else if (event.key === "Escape" && where.task) location.hash = link(id, { ...where, task: null });
    else if (event.key === "Escape" && where.at) location.hash = link(id, { ...where, at: null });
    else if (buttons.keys[event.key] && ctx.mayAct()) { event.preventDefault(); buttons.keys[event.key](); }
  };
  document.addEventListener("keydown", keys);
  return { key: id, move, close() { document.removeEventListener("keydown", keys); live.stop(); view?.close(); time.close(); } };
}

function refuse(error) {
  if (error.status !== 401 && error.status !== 404) return;
  page?.close();
  page = null;
  show(app, h("main.all", null, h("div.empty", null, h("h1", null, error.status === 401 ? "This link has expired" : "There is no such loop"), h("p", null, error.hint || error.message), h("p", null, h("a", { href: "#/" }, "All loops")))));
}

function route() {
  const { id } = address();
  const key = id || (frozen ? frozen.summary.id : "all");
  if (page && page.key === key) { page.move(); return; }
  page?.close();
  page = key === "all" ? allLoops() : oneLoop(key);
}

async function begin() {
  try { session = await get("/session"); } catch (error) { refuse(error); return; }
  app.setAttribute("aria-busy", "false");
  setInterval(() => document.querySelectorAll("[data-ago]").forEach((node) => show(node, ago(node.dataset.ago, Date.now()))), 5000);
  window.addEventListener("hashchange", route);
  route();
}

begin();
