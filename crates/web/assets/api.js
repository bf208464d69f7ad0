// The server, or the data inside of a file that somebody sent: both answer the same questions.

const ROOT = "/api/v1";
const inside = document.getElementById("data");
export const frozen = inside ? JSON.parse(inside.textContent) : null;

// What shows the server that this is its own page. It comes in the part of the address that is never sent, and is
// kept where only pages of this very address and port can read it: cookies are shared with every other port.
const KEY = "key";
let kept = null;
if (!frozen && location.hash.startsWith("#key=")) {
  kept = location.hash.slice("#key=".length);
  try { localStorage.setItem(KEY, kept); } catch { /* then it is for this page only */ }
  history.replaceState(null, "", location.pathname);
}

function withKey(headers) {
  let key = kept;
  // Another tab may have opened the link anew.
  try { key = localStorage.getItem(KEY) || kept; } catch { /* as above */ }
  return key ? { ...headers, "x-wiggum-key": key } : headers;
}

export class Refused extends Error {
  constructor(status, told) {
    super(told.error || `the server said ${status}`);
    this.status = status;
    this.hint = told.hint || "";
  }
}

async function call(method, path, query, body) {
  const pairs = Object.entries(query || {}).filter(([, value]) => value !== null && value !== undefined && value !== "");
  const search = pairs.length ? `?${new URLSearchParams(pairs)}` : "";
  const answer = await fetch(`${ROOT}${path}${search}`, {
    method,
    headers: withKey(body ? { "content-type": "application/json" } : {}),
    body: body ? JSON.stringify(body) : undefined,
    credentials: "same-origin",
  });
  const told = await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, told);
  return told;
}

export function get(path, query) {
  return frozen ? fromFile(path, query || {}) : call("GET", path, query);
}

export function post(path, body) {
  return call("POST", path, null, body || {});
}

export function patch(path, body) {
  return call("PATCH", path, null, body);
}

export function loopPath(id, ...parts) {
  return ["", "loops", id, ...parts].map((part) => encodeURIComponent(part)).join("/").replace(/^%2F/, "/");
}

// Events as they happen, each told as a name and data, until the signal says to stop or the connection is lost:
// then it throws. The browser's own EventSource cannot send a header.
export async function listen(id, after, signal, tell) {
  const search = after === null ? "" : `?after=${after}`;
  const answer = await fetch(`${ROOT}${loopPath(id, "events", "stream")}${search}`, {
    headers: withKey({ accept: "text/event-stream" }), credentials: "same-origin", cache: "no-store", signal,
  });
  if (!answer.ok) throw new Refused(answer.status, await answer.json().catch(() => ({})));
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { done, value } = await reader.read();
    if (done) throw new Error("the connection is lost");
    const messages = (rest + value).split("\n\n");
    rest = messages.pop();
    for (const message of messages) {
      const field = (name) => message.split("\n").find((line) => line.startsWith(`${name}: `))?.slice(name.length + 2);
      if (field("event")) tell(field("event"), field("data"));
    }
  }
}

function cut(list, query, most) {
  const from = Number(query.from || 0);
  return list.slice(from, from + Number(query.limit || most));
}

function frameAt(at) {
  const frames = frozen.frames;
  if (!at) return frames[frames.length - 1];
  let found = frames[0];
  for (const frame of frames) if (frame.seq <= Number(at)) found = frame;
  return found;
}

const SHADES = { d: "done", u: "unverified", r: "running", i: "interrupted", p: "parked", f: "failed", s: "skipped", o: "open" };

function tasksAt(at) {
  const { states } = frameAt(at);
  const rows = [];
  frozen.tasks.forEach((task, number) => {
    const state = SHADES[states[number]];
    if (state) rows.push(at ? { ...task, state, why: state } : { ...task, state });
  });
  return rows;
}

// What was spent until a moment, added up from the calls.
function costAt(at, by) {
  const report = frozen.cost[by];
  if (!at || !report) return report;
  const { seq, status } = frameAt(at);
  const then = Date.parse(status.updated_at);
  const until = (list) => list.filter((one) => Date.parse(one.at) <= then);
  const rows = new Map();
  const total = {};
  const add = (sum, spent) => Object.entries(spent).forEach(([name, value]) => { sum[name] = value === null ? sum[name] ?? null : (sum[name] || 0) + value; });
  for (const { seq: told, keys, spent } of frozen.calls || []) {
    if (told > seq) continue;
    if (!rows.has(keys[by])) rows.set(keys[by], { key: keys[by] });
    add(rows.get(keys[by]), spent);
    add(total, spent);
  }
  const told = frozen.calls ? { rows: [...rows.values()], total } : {};
  return { ...report, ...told, forecast: null, over_time: until(report.over_time), burn_down: until(report.burn_down) };
}

// The paths of the API, answered from what the file has.
async function fromFile(path, query) {
  const parts = path.split("/").slice(1).map(decodeURIComponent);
  const [, , what, which, more] = parts;
  const missing = () => { throw new Refused(404, { error: "this file does not have it" }); };
  if (parts[0] === "session") return { version: frozen.version, read_only: true };
  if (parts[0] === "inbox") return { questions: [] };
  if (parts.length === 1) return { repository: "", loops: [frozen.summary] };
  switch (what) {
    case undefined: return frameAt(query.at).status;
    case "tasks": {
      if (which) {
        const task = tasksAt(query.at).find(({ id }) => id === which) || missing();
        return { ...frozen.specs[which], ...task, iterations: frozen.iterations.filter((span) => span.task === which) };
      }
      const search = (query.search || "").toLowerCase();
      const rows = tasksAt(query.at).filter((row) => (!query.state || row.state === query.state) &&
        (!search || row.id.toLowerCase().includes(search) || row.title.toLowerCase().includes(search)));
      return { total: rows.length, tasks: cut(rows, query, 1000) };
    }
    case "graph": {
      const places = new Map(frozen.tasks.map(({ id }, number) => [id, number]));
      const rows = tasksAt(query.at);
      const at = new Map(rows.map(({ id }, number) => [places.get(id), number]));
      return { nodes: rows.map((row) => ({ ...row,
        after: (frozen.tasks[places.get(row.id)].after || []).map((number) => at.get(number)).filter((n) => n !== undefined) })) };
    }
    case "iterations": {
      if (!which) return { total: frozen.iterations.length, iterations: cut(frozen.iterations, query, 5000) };
      const kept = frozen.attempts[which] || missing();
      if (!more) return kept.attempt;
      if (more === "diff") return kept.diff ? { ...kept.diff, total: kept.diff.lines.length } : missing();
      const entries = kept.transcript || [];
      const from = query.from === undefined ? 0 : Number(query.from);
      return { iteration: Number(which), running: false, total: entries.length, from, entries: entries.slice(from) };
    }
    case "events": {
      if (which) return frozen.events.find(({ seq }) => seq === Number(which)) || missing();
      const limit = Number(query.limit || 200);
      const all = frozen.events;
      if (query.after !== undefined) return { last_seq: frozen.last_seq, events: all.filter(({ seq }) => seq > query.after).slice(0, limit) };
      const before = all.filter(({ seq }) => seq < (query.before || Infinity));
      return { last_seq: frozen.last_seq, events: before.slice(-limit) };
    }
    case "cost": return costAt(query.at, query.by || "task");
    case "texts": return frozen.texts[which] || missing();
    case "checkpoints": return { total: frozen.checkpoints.length, checkpoints: cut(frozen.checkpoints, query, 1000) };
    case "health": return frozen.health;
    case "inbox": return { questions: [] };
    default: return missing();
  }
}
