// Colours for code in diffs: a small tokenizer that is right often enough for every language people write.

import { h } from "./dom.js";

const WORDS = new Set(("abstract as async await break case catch class const continue crate def default defer delete do dyn " +
  "elif else end enum except export extends extern false final finally fn for from func function global go if impl implements " +
  "import in instanceof interface is lambda let loop match mod move mut namespace new nil none not null or package pass private " +
  "protected pub public raise ref return self Self static struct super switch template then this throw trait true try type " +
  "typedef typeof undefined union unsafe use using var virtual void where while with yield None True False and").split(" "));

const TOKENS = /(\/\/.*|#(?![[!a-fA-F0-9]{1}\w{2}).*|--\s.*|\/\*.*?(?:\*\/|$))|("(?:\\.|[^"\\])*"?|'(?:\\.|[^'\\])*'|`(?:\\.|[^`\\])*`?)|(\b\d[\w.]*\b)|([A-Za-z_$][\w$]*)/g;
const HASH = /\.(py|rb|sh|bash|toml|ya?ml|pl|r|mk|cfg|ini|conf)$|Makefile|Dockerfile/;
const PLAIN = /\.(md|txt|rst|lock|csv|log)$/;

export function colour(line, path) {
  if (line.length > 2000 || PLAIN.test(path)) return [line];
  const out = [];
  let end = 0;
  for (const found of line.matchAll(TOKENS)) {
    const [text, comment, string, number, word] = found;
    if (comment && comment.startsWith("#") && !HASH.test(path)) continue;
    if (comment && comment.startsWith("--") && !/\.(sql|lua|hs)$/.test(path)) continue;
    const kind = comment ? "comment" : string ? "string" : number ? "number" : word && WORDS.has(word) ? "word" : "";
    if (!kind) continue;
    if (found.index > end) out.push(line.slice(end, found.index));
    out.push(h(`span.t-${kind}`, null, text));
    end = found.index + text.length;
  }
  out.push(line.slice(end));
  return out;
}

// The files of a diff: each with its path and its lines, numbered on both sides.
export function filesOf(lines) {
  const files = [];
  let file = null;
  let old = 0;
  let now = 0;
  for (const line of lines) {
    if (line.startsWith("diff --git ")) {
      file = { path: line.replace(/^diff --git (?:"?a\/)?.* "?b\//, "").replace(/"$/, ""), lines: [], added: 0, removed: 0 };
      files.push(file);
    } else if (!file || /^(index |--- |\+\+\+ |new file|deleted file|old mode|new mode|similarity|rename|Binary)/.test(line)) {
      if (file && /^(new file|deleted file|Binary|rename)/.test(line)) file.lines.push({ kind: "note", text: line });
    } else if (line.startsWith("@@")) {
      const [, from, to] = line.match(/^@@+ -(\d+)\S* \+(\d+)/) || [null, 0, 0];
      [old, now] = [Number(from), Number(to)];
      file.lines.push({ kind: "hunk", text: line });
    } else {
      const kind = { "+": "added", "-": "removed" }[line[0]] || "same";
      if (kind === "added") file.added += 1;
      if (kind === "removed") file.removed += 1;
      file.lines.push({ kind, text: line.slice(1), old: kind === "added" ? "" : old, now: kind === "removed" ? "" : now });
      if (kind !== "added") old += 1;
      if (kind !== "removed") now += 1;
    }
  }
  return files;
}
