// Questions of loops, and their answers. The first answer wins.

import { loopPath, post } from "./api.js";
import { h, say } from "./dom.js";
import { ago } from "./text.js";

export function questionCard(loopId, question, mayAct, done, from) {
  const id = `answer-${loopId}-${question.id}`;
  const words = h("textarea", { id, rows: "2", placeholder: "Your own words become guidance for the next attempt" });
  // Work without an agent has nobody who would read them.
  const takesWords = question.takes_words !== false;
  const buttons = [];
  async function answer(text) {
    buttons.forEach((button) => { button.disabled = true; });
    try {
      const { message } = await post(loopPath(loopId, "questions", question.id, "answer"), { answer: text });
      say(message);
    } catch (error) {
      say(`${error.message}. ${error.hint || ""}`);
    }
    buttons.forEach((button) => { button.disabled = false; });
    done();
  }
  const button = (label, text, kind) => {
    const made = h(kind ? `button.${kind}` : "button", { onclick: () => answer(text) }, label);
    buttons.push(made);
    return made;
  };
  return h("section.card.question", { "aria-label": `Question ${question.id}` },
    h("header", null, h("span.tag", null, question.id), h("span.soft", null, from && `${from} · `, question.kind, question.task && ` · ${question.task}`), h("span.soft.end", { "data-ago": question.raised_at }, ago(question.raised_at, Date.now()))),
    h("h2", null, question.summary),
    question.context && h("p.text", null, question.context),
    question.question && question.question !== question.summary && h("p.lead", null, question.question),
    question.answered ? h("p.note", null, "Answered; the next run takes it up.") : mayAct && h("div.reply", null,
      question.options.length > 0 && h("ol.options", null, question.options.map((option, at) => h("li", null, button(h("span", null, h("b", null, `${at + 1}`), " ", option), String(at + 1), "option")))),
      takesWords && h("div.field", null, h("label", { for: id }, "Answer"), words),
      h("div.row.wrap", null,
        takesWords && (() => { const made = h("button.primary", { onclick: () => words.value.trim() ? answer(words.value) : words.focus() }, "Answer"); buttons.push(made); return made; })(),
        button("Try again", "retry"), button("Skip the task", "skip"), !takesWords && button("It is done", "done"), button("End the run", "abort", "danger"))),
    !mayAct && !question.answered && h("p.soft", null, "This link may only look."));
}
