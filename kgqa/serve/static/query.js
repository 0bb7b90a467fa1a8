// Queries: copy, run, explain; the rows as a table.

import { post } from "./api.js";
import { byId, button, clean, copyButton, counted, el, nodeLink, note, problem, say, verbatim, words } from "./dom.js";

const MAX_ROWS = 500;

/** Show a query of an answer with its buttons. */
export function queryBlock(title, sparql, about = "") {
  const result = el("div", { class: "result", "aria-live": "polite" });
  return el(
    "details",
    { class: "query" },
    el("summary", {}, title),
    about ? note(about) : null,
    el("pre", { tabindex: 0, role: "group", dir: "ltr", "aria-label": title }, verbatim(sparql)),
    el(
      "div",
      { class: "row buttons" },
      copyButton(sparql),
      button("Run", (event) => busy(event.currentTarget, () => run(sparql, result))),
      button("Explain in words", (event) => busy(event.currentTarget, () => explain(sparql, result))),
      button("Change", () => edit(sparql)),
    ),
    result,
  );
}

/** Prepare the view in which a query can be written; `example` is a query of the graph to begin with. */
export function startQuery(example) {
  const result = byId("query-result");
  const area = byId("sparql");
  area.value ||= verbatim(example ?? "");
  byId("query-form").addEventListener("submit", (event) => {
    event.preventDefault();
    busy(event.submitter ?? event.target.querySelector("button"), () => run(area.value, result));
  });
  area.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) byId("query-form").requestSubmit();
  });
  byId("explain").addEventListener("click", (event) => busy(event.currentTarget, () => explain(area.value, result)));
}

function edit(sparql) {
  byId("sparql").value = sparql;
  byId("query-result").replaceChildren();
  location.hash = "#query";
}

async function busy(pressed, action) {
  pressed.disabled = true;
  try {
    await action();
  } finally {
    pressed.disabled = false;
  }
}

async function run(sparql, place) {
  place.replaceChildren(note("Running…"));
  try {
    const { columns, rows, seconds } = await post("/query", { sparql });
    const time = seconds === undefined ? "" : `, ${seconds.toFixed(2)} s`;
    say(counted(rows.length, "row"));
    place.replaceChildren(note(counted(rows.length, "row") + time), rows.length ? table(columns, rows) : "");
    if (rows.length > MAX_ROWS) place.append(note(`The first ${MAX_ROWS} rows are shown.`));
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

async function explain(sparql, place) {
  try {
    const reply = await post("/explain", { sparql });
    place.replaceChildren(el("p", { class: "explained", dir: "auto" }, verbatim(reply.words)));
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

function table(columns, rows) {
  const head = columns.map((name) => words(name, "th", { scope: "col" }));
  const body = rows.slice(0, MAX_ROWS).map((row) => el("tr", {}, columns.map((name, index) => cell(Array.isArray(row) ? row[index] : row[name]))));
  const found = el("table", {}, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
  return el("div", { class: "wide tall", tabindex: 0, role: "group", "aria-label": "Rows" }, found);
}

function cell(value) {
  if (value === null || value === undefined) return el("td", {});
  if (typeof value !== "object") return words(value, "td");
  const name = clean(value.name ?? value.value ?? value.id ?? value.iri);
  const id = value.id && clean(value.id) !== name ? [" ", el("code", { dir: "ltr" }, clean(value.id))] : null;
  return el("td", {}, nodeLink({ ...value, name }), id);
}
