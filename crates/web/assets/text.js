// Words and figures as people read them, and text of others made harmless.

const ESCAPES = /\x1b(?:\[[0-?]*[ -/]*[@-~]?|[\]PX^_][^\x07\x1b]*(?:\x07|\x1b\\)?|.?)/gs;
const STRANGE = /[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200b-\u200f\u2028\u2029\u202a-\u202e\u2060-\u2069\ufeff]/g;

// What an agent printed, as text: no escapes, and nothing that reorders or hides what stands beside it.
export function harmless(text) {
  return String(text)
    .replace(ESCAPES, "")
    .replace(/\r\n/g, "\n")
    .replace(/\r/g, "\n")
    .replace(STRANGE, (c) => {
      const code = c.charCodeAt(0);
      return code < 0x20 ? String.fromCharCode(0x2400 + code) : `⟨${code.toString(16).padStart(4, "0")}⟩`;
    });
}

export function count(n) {
  return Number(n || 0).toLocaleString("en-US");
}

export function counted(n, word) {
  return `${count(n)} ${word}${n === 1 ? "" : "s"}`;
}

// Cents, or more of the figure where cents would hide it.
export function money(usd) {
  if (!usd) return "$0.00";
  const digits = Math.abs(usd) >= 1 || Math.abs(usd * 100 - Math.round(usd * 100)) < 1e-4 ? 2 : 4;
  return `$${usd.toFixed(digits)}`;
}

export function tokens(n) {
  if (n >= 1e6) return `${(n / 1e6).toFixed(1)} M`;
  if (n >= 1e4) return `${Math.round(n / 1e3)} k`;
  return count(n);
}

export function span(ms) {
  if (ms < 0 || !Number.isFinite(ms)) return "";
  const s = ms / 1000;
  if (s < 1) return `${Math.round(ms)} ms`;
  if (s < 60) return `${s.toFixed(s < 10 ? 1 : 0)} s`;
  if (s < 3600) return `${Math.floor(s / 60)} min ${Math.floor(s % 60)} s`;
  if (s < 86400) return `${Math.floor(s / 3600)} h ${Math.floor((s % 3600) / 60)} min`;
  return `${Math.floor(s / 86400)} d ${Math.floor((s % 86400) / 3600)} h`;
}

export function ago(at, now) {
  const ms = now - Date.parse(at);
  return ms < 3000 ? "now" : `${span(ms).replace(/(\d) s$/, "$1 s")} ago`;
}

export function clock(at) {
  return new Date(at).toLocaleTimeString("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
}

export function day(at) {
  return new Date(at).toLocaleString("en-GB", {
    day: "numeric", month: "short", hour: "2-digit", minute: "2-digit", second: "2-digit",
  });
}

// What a bar or dot of an iteration tells by its colour.
export function shadeOf(outcome) {
  if (outcome === "completed" || outcome === "accepted") return "done";
  if (outcome === "under way") return "running";
  if (outcome === "interrupted" || outcome.startsWith("hand")) return "skipped";
  if (outcome === "asked" || outcome.includes("held") || outcome.includes("question")) return "parked";
  if (outcome === "unclaimed" || outcome.includes("no claim") || outcome.includes("unavailable")) return "open";
  return "failed";
}

export const STATES = ["done", "unverified", "running", "interrupted", "parked", "failed", "skipped", "open"];
