// The tasks and what they wait on: in layers from left to right, to zoom into and to move about in.

import { get, loopPath } from "./api.js";
import { h, show, svg } from "./dom.js";
import { STATES, count } from "./text.js";

const WIDE = 190;
const HIGH = 46;
const GAP_X = 70;
const GAP_Y = 14;
// Below this nothing could be read: tasks are drawn as one shape for each colour.
const READABLE = 0.45;
// A layer of many is folded into columns.
const TALL = 24;
// More lines than that are a grey cloud from afar.
const CLOUD = 3000;
// Tasks, and places kept for lines, up to which lines keep out of tasks' way.
const MANY = 1500;
const THIN = 12;

// Places by the longest way to a task; what waits on each other in a circle stays where it was found.
export function layout(nodes) {
  const layer = new Array(nodes.length).fill(0);
  const waits = nodes.map((node) => (node.after || []).length);
  const next = nodes.map(() => []);
  nodes.forEach((node, at) => (node.after || []).forEach((from) => next[from].push(at)));
  const todo = [];
  waits.forEach((n, at) => { if (!n) todo.push(at); });
  for (let i = 0; i < todo.length; i += 1) {
    for (const at of next[todo[i]]) {
      layer[at] = Math.max(layer[at], layer[todo[i]] + 1);
      waits[at] -= 1;
      if (waits[at] === 0) todo.push(at);
    }
  }
  const { items, before, after, ways } = passing(nodes, layer);
  const layers = [];
  items.forEach((at, item) => (layers[at] ||= []).push(item));
  const place = new Array(items.length).fill(0);
  layers.forEach((all) => all.forEach((item, row) => { place[item] = row; }));
  // Each task near the middle of what it waits on, then of what waits on it.
  for (let sweep = 0; sweep < 4; sweep += 1) {
    const down = sweep % 2 === 0;
    const near = down ? before : after;
    for (const all of down ? layers : [...layers].reverse()) {
      const wish = (item) => (near[item].length ? near[item].reduce((sum, other) => sum + place[other], 0) / near[item].length : place[item]);
      const wishes = new Map(all.map((item) => [item, wish(item)]));
      all.sort((a, b) => wishes.get(a) - wishes.get(b) || a - b);
      all.forEach((item, row) => { place[item] = row; });
    }
  }
  return { ...spread(layers, nodes.length), ways };
}

// A line that passes layers by takes a narrow place in each, so that it runs beside tasks and not through
// them. Where there are too many to be told apart, it runs straight.
function passing(nodes, layer) {
  const items = [...layer];
  const [before, after] = [nodes.map(() => []), nodes.map(() => [])];
  const ways = new Map();
  const join = (a, b) => { after[a].push(b); before[b].push(a); };
  const crowded = nodes.length > MANY;
  nodes.forEach((node, at) => (node.after || []).forEach((from) => {
    const steps = layer[at] - layer[from] - 1;
    if (crowded || steps < 1 || items.length + steps > nodes.length + MANY) { join(from, at); return; }
    const way = [];
    for (let step = 1; step <= steps; step += 1) {
      way.push(items.length);
      items.push(layer[from] + step);
      before.push([]);
      after.push([]);
    }
    [from, ...way, at].reduce((a, b) => { join(a, b); return b; });
    ways.set(`${from} ${at}`, way);
  }));
  return { items, before, after, ways };
}

// Where everything goes: about twice as wide as high, however many there are.
function spread(layers, tasks) {
  const most = Math.max(TALL, Math.round(Math.sqrt(tasks * 1.7)));
  const step = (item) => (item < tasks ? HIGH + GAP_Y : THIN);
  const folded = layers.map((all) => {
    const columns = Math.ceil(all.filter((item) => item < tasks).length / most);
    const rows = Math.ceil(all.length / Math.max(1, columns));
    return { all, rows, columns: Math.max(1, columns) };
  });
  const high = ({ all, rows, columns }) => (columns > 1 ? rows * (HIGH + GAP_Y) : all.reduce((sum, item) => sum + step(item), 0));
  const tallest = Math.max(1, ...folded.map(high));
  const spots = [];
  let left = 0;
  for (const part of folded) {
    let y = (tallest - high(part)) / 2;
    const top = y;
    part.all.forEach((item, n) => {
      if (part.columns > 1 && n % part.rows === 0) y = top;
      spots[item] = { x: left + (part.columns > 1 ? Math.floor(n / part.rows) * (WIDE + 16) : 0), y };
      y += part.columns > 1 ? HIGH + GAP_Y : step(item);
    });
    left += (part.columns - 1) * (WIDE + 16) + WIDE + GAP_X;
  }
  return { spots, width: Math.max(1, left - GAP_X), height: tallest };
}

// From one task to the next, straight through the places that are kept for it.
function curve(from, at, { spots, ways }) {
  const [a, b] = [spots[from], spots[at]];
  let [x, y] = [a.x + WIDE, a.y + HIGH / 2];
  let d = `M${x} ${y}`;
  const to = (x2, y2) => {
    const bend = Math.max(24, (x2 - x) / 2);
    d += `C${x + bend} ${y} ${x2 - bend} ${y2} ${x2} ${y2}`;
    [x, y] = [x2, y2];
  };
  for (const item of ways.get(`${from} ${at}`) || []) {
    to(spots[item].x, spots[item].y + THIN / 2);
    x += WIDE;
    d += `H${x}`;
  }
  to(b.x, b.y + HIGH / 2);
  return d;
}

export function graphView(ctx) {
  const edges = svg("path.edges");
  const far = svg("g");
  const near = svg("g");
  const world = svg("g", null, edges, far, near);
  const picture = svg("svg.graph", { tabindex: "0", role: "application", "aria-label": "Tasks and what they wait on. Arrow keys move, plus and minus zoom, the list of tasks has the same as text." }, world);
  const note = h("p.note");
  const el = h("div.graph-view", null,
    h("div.tools", null,
      h("button", { onclick: () => zoom(1.3), "aria-label": "Zoom in" }, "+"),
      h("button", { onclick: () => zoom(1 / 1.3), "aria-label": "Zoom out" }, "−"),
      h("button", { onclick: () => { moved = false; fit(); } }, "Fit"), note,
      h("span.legend", null, STATES.map((state) => h(`span.is-${state}`, null, h("i.dot"), state)))),
    picture);
  let nodes = [];
  let drawn = null;
  let by = new Map();
  let lines = [];
  let whole = "";
  let view = { x: 0, y: 0, scale: 1 };
  let due = 0;
  // Somebody chose what to look at: it stays.
  let moved = false;

  async function load() {
    const { nodes: found } = await get(loopPath(ctx.id, "graph"), { at: ctx.moment() });
    const same = found.length === nodes.length && found.every((node, at) => node.id === nodes[at].id && String(node.after) === String(nodes[at].after));
    nodes = found;
    by = new Map(nodes.map((node, at) => [node.id, at]));
    if (!same || !drawn) {
      drawn = layout(nodes);
      moved = false;
      lines = nodes.flatMap((node, at) => (node.after || []).map((from) => ({ from, at, d: curve(from, at, drawn) })));
      whole = lines.length > CLOUD ? "" : lines.map(({ d }) => d).join("");
      fit();
    }
    show(note, nodes.length ? `${count(nodes.length)} tasks` : "No tasks yet", lines.length > CLOUD && ", zoom in to see what waits on what");
    draw();
  }

  function draw() {
    due = 0;
    world.setAttribute("transform", `translate(${view.x} ${view.y}) scale(${view.scale})`);
    edges.setAttribute("stroke-width", Math.min(3, 1.3 / view.scale));
    const readable = view.scale >= READABLE;
    far.replaceChildren();
    near.replaceChildren();
    if (!drawn) return;
    if (!readable) {
      edges.setAttribute("d", whole);
      for (const state of STATES) {
        const d = nodes.map((node, at) => node.state === state ? `M${drawn.spots[at].x} ${drawn.spots[at].y}h${WIDE}v${HIGH}h${-WIDE}z` : "").join("");
        if (d) far.append(svg(`path.block.is-${state}`, { d }));
      }
      return;
    }
    const box = picture.getBoundingClientRect();
    const [left, top] = [-view.x / view.scale - WIDE, -view.y / view.scale - HIGH];
    const [right, bottom] = [(box.width - view.x) / view.scale, (box.height - view.y) / view.scale];
    const seen = new Set();
    nodes.forEach((_, at) => { const { x, y } = drawn.spots[at]; if (x >= left && x <= right && y >= top && y <= bottom) seen.add(at); });
    edges.setAttribute("d", whole || lines.filter(({ from, at }) => seen.has(from) || seen.has(at)).map(({ d }) => d).join(""));
    seen.forEach((at) => {
      const node = nodes[at];
      const { x, y } = drawn.spots[at];
      const [id, title] = [short(node.id, 22), node.title === node.id ? "" : short(node.title, 26)];
      // What is heard begins with what is seen, and tells what was too long for the picture.
      const seenWords = [id, title].filter(Boolean).join(" ");
      const name = `${seenWords}, ${node.state}${seenWords.includes("…") ? `: ${node.id} ${node.title}` : ""}`;
      near.append(svg(`g.node.is-${node.state}`, { transform: `translate(${x} ${y})`, role: "button", tabindex: "0", "aria-label": name, onclick: () => ctx.openTask(node.id), onkeydown: (event) => { if (event.key === "Enter") ctx.openTask(node.id); } },
        svg("title", null, name), " ",
        svg("rect", { width: WIDE, height: HIGH, rx: 9 }),
        svg("rect.edge", { width: 5, height: HIGH - 16, x: 8, y: 8, rx: 2.5 }),
        svg("text.id", { x: 22, y: title ? 19 : 28 }, id), " ",
        title && svg("text.title", { x: 22, y: 35 }, title)));
    });
  }

  const short = (text, most) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);
  const later = () => { if (!due) due = requestAnimationFrame(draw); };

  function fit() {
    const box = picture.getBoundingClientRect();
    if (!drawn || !box.width) return;
    const scale = Math.min(1.1, (box.width - 40) / drawn.width, (box.height - 40) / drawn.height);
    view = { scale: Math.max(0.01, scale), x: 0, y: 0 };
    view.x = (box.width - drawn.width * view.scale) / 2;
    view.y = (box.height - drawn.height * view.scale) / 2;
    later();
  }

  function zoom(by, x, y) {
    moved = true;
    const box = picture.getBoundingClientRect();
    const [cx, cy] = [x ?? box.width / 2, y ?? box.height / 2];
    const scale = Math.max(0.01, Math.min(4, view.scale * by));
    view.x = cx - ((cx - view.x) * scale) / view.scale;
    view.y = cy - ((cy - view.y) * scale) / view.scale;
    view.scale = scale;
    later();
  }

  const fingers = new Map();
  picture.addEventListener("pointerdown", (event) => { fingers.set(event.pointerId, event); });
  picture.addEventListener("pointermove", (event) => {
    const before = fingers.get(event.pointerId);
    if (!before) return;
    const [dx, dy] = [event.clientX - before.clientX, event.clientY - before.clientY];
    if (fingers.size === 1 && !picture.hasPointerCapture(event.pointerId)) {
      // A click on a task is no move.
      if (Math.hypot(dx, dy) < 4) return;
      picture.setPointerCapture(event.pointerId);
    }
    if (fingers.size === 2) {
      const other = [...fingers].find(([id]) => id !== event.pointerId)[1];
      const apart = (one) => Math.hypot(one.clientX - other.clientX, one.clientY - other.clientY) || 1;
      const box = picture.getBoundingClientRect();
      zoom(apart(event) / apart(before), other.clientX - box.left, other.clientY - box.top);
    } else {
      moved = true;
      view.x += dx;
      view.y += dy;
    }
    fingers.set(event.pointerId, event);
    later();
  });
  for (const over of ["pointerup", "pointercancel", "pointerleave"]) picture.addEventListener(over, (event) => fingers.delete(event.pointerId));
  picture.addEventListener("wheel", (event) => {
    event.preventDefault();
    const box = picture.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.0015), event.clientX - box.left, event.clientY - box.top);
  }, { passive: false });
  picture.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [60, 0], ArrowRight: [-60, 0], ArrowUp: [0, 60], ArrowDown: [0, -60] };
    if (moves[event.key]) { moved = true; view.x += moves[event.key][0]; view.y += moves[event.key][1]; later(); event.preventDefault(); }
    else if (event.key === "+" || event.key === "=") zoom(1.2);
    else if (event.key === "-") zoom(1 / 1.2);
    else if (event.key === "0") { moved = false; fit(); }
  });
  const watch = new ResizeObserver(() => (moved ? later() : fit()));
  watch.observe(picture);

  return {
    el,
    load,
    change({ tasks }) {
      if (ctx.moment()) return;
      for (const row of tasks) if (by.has(row.id)) nodes[by.get(row.id)].state = row.state;
      later();
    },
    close: () => watch.disconnect(),
  };
}
