// Elements. All text becomes text nodes; nothing on this page turns text into markup.

import { harmless } from "./text.js";

const SVG = "http://www.w3.org/2000/svg";

function fill(node, attributes, children) {
  for (const [name, value] of Object.entries(attributes || {})) {
    if (value === null || value === undefined) continue;
    if (name.startsWith("aria-")) { node.setAttribute(name, String(value)); continue; }
    if (value === false) continue;
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (name === "style") for (const [key, text] of Object.entries(value)) node.style.setProperty(key, text);
    else if (name === "value") node.value = value;
    else node.setAttribute(name, value === true ? "" : String(value));
  }
  put(node, children);
  return node;
}

function put(node, children) {
  for (const child of children.flat(Infinity)) {
    if (child === null || child === undefined || child === false) continue;
    node.append(child instanceof Node ? child : document.createTextNode(harmless(child)));
  }
}

export function h(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = document.createElement(name);
  if (classes.length) node.className = classes.join(" ");
  return fill(node, attributes, children);
}

export function svg(tag, attributes, ...children) {
  const [name, ...classes] = tag.split(".");
  const node = document.createElementNS(SVG, name);
  if (classes.length) node.setAttribute("class", classes.join(" "));
  return fill(node, attributes, children);
}

export function show(node, ...children) {
  node.replaceChildren();
  put(node, children);
  return node;
}

export function say(text) {
  const said = document.getElementById("said");
  said.replaceChildren(document.createTextNode(harmless(text)));
  said.classList.add("seen");
  clearTimeout(say.timer);
  say.timer = setTimeout(() => said.classList.remove("seen"), 6000);
}

export function chip(state, text) {
  return h(`span.chip.is-${state}`, null, h("i.dot", { "aria-hidden": "true" }), text || state);
}

export function card(title, ...children) {
  return h("section.card", { "aria-label": title }, h("h2", null, title), ...children);
}

export function fact(name, value, title) {
  return h("div.fact", { title }, h("dt", null, name), h("dd", null, value));
}

export function bar(part, whole, shade, label) {
  const percent = whole > 0 ? Math.min(100, (100 * part) / whole) : 0;
  return h("div.bar", { role: "img", "aria-label": `${label}: ${Math.round(percent)} percent` },
    h(`i.fill.is-${shade}`, { style: { width: `${percent}%` } }));
}

// Asks in a dialog: fields by name, each with a label. Answers with their values, or null.
export function ask(title, fields, button, danger) {
  return new Promise((resolve) => {
    const inputs = fields.map(({ name, label, long, value, hint, required, number }) => {
      const id = `field-${name}`;
      const input = h(long ? "textarea" : "input", { id, name, type: number ? "number" : null, rows: long ? 4 : null, required, value: value || "", autocomplete: "off" });
      return { name, input, row: h("div.field", null, h("label", { for: id }, label), input, hint && h("p.hint", null, hint)) };
    });
    const close = (answer) => { dialog.close(); dialog.remove(); resolve(answer); };
    const send = (event) => {
      event.preventDefault();
      const missing = inputs.find(({ input }) => input.required && !input.value.trim());
      if (missing) { missing.input.focus(); return; }
      close(Object.fromEntries(inputs.map(({ name, input }) => [name, input.value])));
    };
    const dialog = h("dialog", { "aria-label": title, oncancel: (event) => { event.preventDefault(); close(null); } },
      h("form", { onsubmit: send },
        h("h2", null, title), inputs.map(({ row }) => row),
        h("div.row.end", null,
          h("button", { type: "button", onclick: () => close(null) }, "Cancel"),
          h(danger ? "button.danger" : "button.primary", { type: "submit", onclick: send }, button))));
    document.body.append(dialog);
    dialog.showModal();
  });
}
