// The questions of this browser: their ids and texts, kept in its local storage.

import { button, byId, clean, el, note, say } from "./dom.js";

const KEY = "kgqa-history";
const MOST = 100;

function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(KEY) ?? "[]");
    return Array.isArray(found) ? found.filter((each) => typeof each?.id === "string") : [];
  } catch {
    return [];
  }
}

function keep(items) {
  try {
    localStorage.setItem(KEY, JSON.stringify(items.slice(0, MOST)));
  } catch {
    // storage is full or not allowed
  }
}

/** Remember an answer. */
export function remember({ id, asked, question }) {
  keep([{ id, question: asked || question, at: new Date().toISOString() }, ...kept().filter((each) => each.id !== id)]);
}

/** Show the remembered questions. */
export function showHistory() {
  const items = kept();
  const place = byId("past");
  if (!items.length) {
    place.replaceChildren(note("Nothing was asked yet."));
    return;
  }
  const clear = button("Clear the history", () => {
    keep([]);
    showHistory();
    say("The history is empty");
    byId("main").focus();
  });
  place.replaceChildren(el("ol", { class: "past" }, items.map(item)), clear);
}

function item({ id, question, at }) {
  const time = new Date(at);
  const when = Number.isNaN(time.getTime()) ? "" : time.toLocaleString("en", { dateStyle: "medium", timeStyle: "short" });
  return el("li", {}, el("a", { href: `/a/${encodeURIComponent(id)}`, dir: "auto" }, clean(question) || clean(id)), " ", el("time", { class: "note" }, when));
}
