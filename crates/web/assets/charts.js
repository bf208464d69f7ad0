// Lines and areas over time, drawn as SVG.

import { h, svg } from "./dom.js";

export function niceStep(room, wanted) {
  const raw = room / Math.max(1, wanted);
  const power = 10 ** Math.floor(Math.log10(raw || 1));
  const unit = [1, 2, 5, 10].find((n) => n * power >= raw) || 10;
  return unit * power;
}

const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400, 172800, 604800].map((s) => s * 1000);

export function timeTicks(from, to, wanted) {
  const step = STEPS.find((ms) => (to - from) / ms <= wanted) || 30 * 86400000;
  const ticks = [];
  for (let at = Math.ceil(from / step) * step; at <= to; at += step) ticks.push(at);
  const options = step >= 86400000 ? { day: "numeric", month: "short" }
    : step >= 60000 ? { hour: "2-digit", minute: "2-digit" } : { hour: "2-digit", minute: "2-digit", second: "2-digit" };
  return ticks.map((at) => ({ at, label: new Date(at).toLocaleString("en-GB", options) }));
}

// A chart: `lines` are stepped or straight, `bands` lie behind them, `limits` are drawn across.
export function chart({ label, from, to, top, lines, bands = [], limits = [], y = String, height = 220 }) {
  // Text stays as large as the page around it.
  const width = Math.max(340, Math.min(1180, window.innerWidth - 90));
  const pad = { left: 56, right: 12, top: 10, bottom: 24 };
  const x = (at) => pad.left + ((width - pad.left - pad.right) * (at - from)) / Math.max(1, to - from);
  const up = (value) => height - pad.bottom - ((height - pad.top - pad.bottom) * value) / (top || 1);
  const path = ({ points, stepped }) => points.map(([at, value], n) => {
    const step = stepped && n ? `H${x(at).toFixed(1)}` : "";
    return `${n ? step : ""}${n ? "L" : "M"}${x(at).toFixed(1)} ${up(value).toFixed(1)}`;
  }).join("");
  const area = (upper, lower) => `${path({ points: upper })}${path({ points: [...lower].reverse() }).replace("M", "L")}Z`;
  const step = niceStep(top || 1, 4);
  const values = [];
  for (let value = 0; value <= top * 1.0001; value += step) values.push(value);
  return h("figure.chart", null, svg("svg", { viewBox: `0 0 ${width} ${height}`, role: "img", "aria-label": label },
    values.map((value) => [
      svg("line.grid", { x1: pad.left, x2: width - pad.right, y1: up(value), y2: up(value) }),
      svg("text.tick", { x: pad.left - 8, y: up(value) + 4, "text-anchor": "end" }, y(value)),
    ]),
    timeTicks(from, to, 6).map(({ at, label: text }) => svg("text.tick", { x: x(at), y: height - 6, "text-anchor": "middle" }, text)),
    bands.map(({ upper, lower, kind }) => svg(`path.band.${kind}`, { d: area(upper, lower) })),
    limits.map(({ value, label: text }) => value <= top && [
      svg("line.limit", { x1: pad.left, x2: width - pad.right, y1: up(value), y2: up(value) }),
      svg("text.tick", { x: width - pad.right, y: up(value) - 5, "text-anchor": "end" }, text),
    ]),
    lines.map((line) => svg(`path.line.${line.kind}`, { d: path(line) }))));
}
