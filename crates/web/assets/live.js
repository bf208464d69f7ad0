// One loop as it goes on: its status, its events in order, each of them once, over connections that may be lost.

import { frozen, get, listen, loopPath } from "./api.js";

const SOON = 500;
const LATEST = 8000;

export class Live {
  constructor(id) {
    this.id = id;
    this.status = null;
    this.seq = null;
    this.connected = false;
    this.listeners = new Set();
    this.delay = SOON;
    this.wake = () => { this.delay = SOON; this.reopen(0); };
  }

  // Calls back with what happened: status, events, change, reload or connection.
  on(listener) {
    this.listeners.add(listener);
    return () => this.listeners.delete(listener);
  }

  tell(kind, data) {
    for (const listener of [...this.listeners]) listener(kind, data);
  }

  async start() {
    this.status = await get(loopPath(this.id));
    this.seq = this.status.last_seq;
    this.tell("status", this.status);
    if (frozen) return;
    window.addEventListener("online", this.wake);
    this.open();
  }

  stop() {
    this.stopped = true;
    window.removeEventListener("online", this.wake);
    clearTimeout(this.timer);
    this.source?.abort();
  }

  open() {
    if (this.stopped) return;
    const source = new AbortController();
    this.source = source;
    const tell = (name, data) => { if (source === this.source) this.heard(name, data); };
    listen(this.id, this.seq, source.signal, tell).catch(() => {
      if (source !== this.source || this.stopped) return;
      source.abort();
      this.lost = true;
      this.set(false);
      this.reopen(this.delay);
      this.delay = Math.min(LATEST, this.delay * 2);
    });
  }

  heard(name, data) {
    if (name === "hello") {
      this.delay = SOON;
      // What changed while nobody listened is asked for once.
      const again = this.lost || JSON.parse(data).engine_alive !== this.status.engine_alive;
      this.lost = false;
      this.set(true);
      if (again) this.refresh();
    } else if (name === "event") {
      const row = JSON.parse(data);
      if (row.seq <= this.seq) return;
      this.seq = row.seq;
      this.tell("event", row);
    } else if (name === "change") {
      const change = JSON.parse(data);
      this.status = change.status;
      this.tell("status", this.status);
      this.tell("change", change);
      if (change.reload) this.tell("reload");
    }
  }

  reopen(delay) {
    clearTimeout(this.timer);
    if (this.connected) return;
    this.timer = setTimeout(() => { this.source?.abort(); this.open(); }, delay);
  }

  async refresh() {
    this.status = await get(loopPath(this.id));
    this.tell("status", this.status);
    this.tell("reload");
  }

  set(connected) {
    if (this.connected === connected) return;
    this.connected = connected;
    this.tell("connection", connected);
  }
}
