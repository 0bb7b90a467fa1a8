// Shows an answer: names, score, what was checked, paths, rows, evidence, query, notes and cost.

import { drawPath, fitted, stepWords, walksOf } from "./drawing.js";
import { button, byId, clean, copyButton, counted, el, nodeLink, note, relationName, say, words } from "./dom.js";
import { evidenceSection } from "./evidence.js";
import { queryBlock } from "./query.js";

const TEXTS = JSON.parse(byId("texts")?.textContent || "{}");
const MAX_ANSWERS = 30;
const MAX_ROWS = 20;

/** Show an answer object (docs/answer-json.md) in `place`; return a title for it. */
export function showAnswer(place, answer) {
  const article = el(
    "article",
    { class: answer.weak ? "card answer weak-match" : "card answer", "aria-labelledby": "asked" },
    heading(answer),
    result(answer),
    facts(answer),
    ...(answer.paths ?? []).map((path, index) => pathSection(path, index, answer.paths.length)),
    evidenceSection(answer),
    queries(answer),
    cost(answer),
  );
  place.replaceChildren(article);
  const names = (answer.answers ?? []).map((each) => clean(each.name)).filter(Boolean);
  const short = names.length ? names.slice(0, 3).join(", ") + (names.length > 3 ? ", …" : "") : statusWords(answer);
  const many = names.length > 1 ? `${names.length} answers: ` : names.length ? "Answer: " : "";
  say(many + (names.length ? names.slice(0, 10).join(", ") : `${short}. ${clean(answer.reason)}`));
  return `${short} – ${clean(answer.asked || answer.question)} – kgqa`;
}

const statusWords = (answer) => TEXTS.statuses?.[answer.status] ?? (answer.status === "answered" ? "Answered" : clean(answer.status));

function heading(answer) {
  const asked = answer.asked || answer.question;
  const link = answer.id ? el("a", { href: `/a/${encodeURIComponent(answer.id)}`, class: "permanent" }, "Permanent link") : null;
  return el(
    "header",
    {},
    words(asked, "h2", { id: "asked", class: "asked" }),
    clean(answer.question) !== clean(asked) ? el("p", { class: "resolved" }, "asked as: ", words(answer.question, "b")) : null,
    link ? el("p", { class: "note tools" }, link, " ", copyButton(new URL(link.href, location.href).href, "Copy link")) : null,
  );
}

function result(answer) {
  const found = answer.answers ?? [];
  const parts = [];
  if (answer.status !== "answered" || !found.length) {
    parts.push(el("p", { class: "status" }, el("b", {}, statusWords(answer)), answer.reason ? [": ", words(answer.reason)] : null));
  }
  if (answer.weak && found.length) parts.push(el("p", { class: "weak" }, "Weak match: this may not answer the question."));
  if (found.length) {
    const list = el("ul", { class: found.length > 6 ? "answers many" : "answers" }, found.slice(0, MAX_ANSWERS).map(answerItem));
    parts.push(list);
    if (found.length > MAX_ANSWERS) {
      const more = button(`Show ${counted(found.length - MAX_ANSWERS, "more answer")}`, () => {
        list.append(...found.slice(MAX_ANSWERS).map(answerItem));
        more.remove();
        list.children[MAX_ANSWERS].querySelector("a")?.focus();
      });
      parts.push(more);
    }
  }
  if (answer.response) parts.push(words(answer.response, "blockquote", { class: "response" }));
  if (answer.nearest?.length) {
    parts.push(el("h3", {}, "Nearest paths"));
    parts.push(el("ol", {}, answer.nearest.map((each) => el("li", {}, words(each.words), each.score === null ? null : el("span", { class: "note" }, ` ${each.score.toPrecision(3)}`)))));
  }
  const hints = answer.hints ?? [];
  if (hints.length) {
    parts.push(el("h3", {}, "What would help"));
    parts.push(el("ul", { class: "hints" }, hints.map((each) => words(each, "li"))));
  }
  return parts;
}

function answerItem(each) {
  const id = clean(each.id);
  return el("li", {}, nodeLink(each, { class: each.id ? "name" : "name literal" }), id && id !== clean(each.name) ? [" ", el("code", { dir: "ltr" }, id)] : null);
}

function facts(answer) {
  const rows = [];
  const add = (name, ...content) => rows.push(el("div", {}, el("dt", {}, name), el("dd", {}, ...content)));
  if (answer.confidence !== null && answer.confidence !== undefined && answer.answers?.length) {
    const percent = Math.round(answer.confidence * 100);
    const meter = el("span", { class: percent < 50 ? "meter low" : "meter", "aria-hidden": "true" }, el("span", {}));
    meter.firstChild.style.width = `${percent}%`;
    add("score", el("b", {}, `${percent}%`), " ", meter, " ", el("span", { class: "note" }, TEXTS.score ?? ""));
  }
  if (answer.sparql) add("query", mark(answer.query_class), TEXTS.queries?.[answer.query_class] ?? clean(answer.query_class));
  if (answer.answers?.length) add("source", grounding(answer));
  if (answer.topics?.length) add("about", answer.topics.map((each, index) => [index ? ", " : null, nodeLink(each)]));
  if (answer.approximate) add("note", "Approximate: the neighbours of a hub were capped, or a query of the search failed.");
  for (const each of answer.notes ?? []) add("note", words(each));
  for (const each of answer.defects ?? []) add("defect", words(each, "span", { class: "problem" }));
  return rows.length ? el("dl", { class: "facts" }, rows) : null;
}

const mark = (kind) => (kind === "exact" || kind === "restricted" ? el("span", { class: "tick", "aria-hidden": "true" }, "✓ ") : null);

function grounding(answer) {
  if (answer.grounding === "model" && answer.response) return TEXTS.unquoted ?? "";
  return TEXTS.grounds?.[answer.grounding] ?? clean(answer.grounding);
}

function pathSection(path, index, count) {
  const conditions = (path.conditions ?? []).map((each) => words(each.words, "li"));
  return el(
    "section",
    { class: "path" },
    el("h3", {}, count > 1 ? `Path ${index + 1} of ${count}` : "Path"),
    words(path.words, "p", { class: "path-words" }),
    fitted(el("div", { class: "canvas" }), (width) => drawPath(path, width)),
    conditions.length ? el("div", { class: "where" }, el("b", {}, "where"), el("ul", {}, conditions)) : null,
    path.operation ? el("p", { class: "where" }, el("b", {}, "then "), words(path.operation.words)) : null,
    rows(path),
  );
}

function rows(path) {
  const walks = walksOf(path);
  if (!path.steps?.length || !path.walks?.length) return null;
  const head = ["topic", ...stepWords(path).map((name, at) => (path.steps[at].direction === "in" ? `← ${name}` : `→ ${name}`))];
  const shown = walks.slice(0, MAX_ROWS);
  const body = shown.map((walk) => el("tr", {}, walk.map((node) => el("td", {}, nodeLink(node)))));
  const triples = (path.triples ?? []).length;
  return el(
    "details",
    { class: "rows" },
    el("summary", {}, `Rows behind the answer: ${counted(walks.length, "walk")}, ${counted(triples, "triple")}`),
    scrolling("Walks", el("table", {}, el("thead", {}, el("tr", {}, head.map((name) => words(name, "th", { scope: "col" })))), el("tbody", {}, body))),
    walks.length > MAX_ROWS ? note(`and ${walks.length - MAX_ROWS} more`) : null,
    triples ? scrolling("Triples", tripleTable(path)) : null,
  );
}

function tripleTable(path) {
  const names = new Map(walksOf(path).flat().filter((node) => node.iri).map((node) => [node.iri, node]));
  const relations = new Map(stepWords(path).map((name, index) => [path.steps[index].relation, name]));
  const cell = (term) => (names.has(term) ? nodeLink(names.get(term)) : words(term));
  const body = path.triples.slice(0, 5 * MAX_ROWS).map(([subject, relation, object]) =>
    el("tr", {}, el("td", {}, cell(subject)), words(relations.get(relation) ?? relationName(relation), "td", { title: clean(relation) }), el("td", {}, cell(object))),
  );
  const head = ["subject", "relation", "object"].map((name) => el("th", { scope: "col" }, name));
  return el("table", { class: "triples" }, el("thead", {}, el("tr", {}, head)), el("tbody", {}, body));
}

/** Wrap what may be wider than the page, so that it scrolls on its own, also with the keyboard. */
export function scrolling(label, ...content) {
  return el("div", { class: "wide", tabindex: 0, role: "group", "aria-label": label }, ...content);
}

function queries(answer) {
  const parts = [];
  if (answer.sparql) parts.push(queryBlock("Query", answer.short_sparql || answer.sparql));
  if (answer.evidence_sparql) parts.push(queryBlock("Query of the evidence", answer.short_evidence_sparql || answer.evidence_sparql, TEXTS.evidence?.[answer.evidence_class]));
  return parts;
}

function cost({ usage, method, model }) {
  if (!usage) return null;
  const tokens = (usage.prompt_tokens ?? 0) + (usage.completion_tokens ?? 0);
  const parts = [
    method ? `method ${clean(method)}` : "",
    model ? `model ${clean(model)}` : "",
    usage.candidates ? counted(usage.candidates, "candidate") : "",
    usage.comparisons ? counted(usage.comparisons, "comparison") : "",
    usage.queries ? counted(usage.queries, "SPARQL query", "SPARQL queries") : "",
    usage.calls ? `${counted(usage.calls, "model call")}, ${counted(tokens, "token")}` : "",
    usage.cost === null || usage.cost === undefined ? "" : `${usage.cost.toFixed(4)} USD`,
    `${usage.seconds?.toFixed(2)} s`,
  ];
  return note(parts.filter(Boolean).join(" · "));
}
