// Evidence over text: statements and quotes, and the chunks in which the quotes are marked.

import { get } from "./api.js";
import { clean, counted, el, nodeLink, note, problem, verbatim, words } from "./dom.js";

const MAX_ITEMS = 40;
const OPEN = 2;

/** Show the citations and the evidence of an answer, and the passages in which they stand. */
export function evidenceSection(answer) {
  const evidence = answer.evidence ?? [];
  const citations = answer.citations ?? [];
  if (!evidence.length && !citations.length) return null;
  const places = passages(evidence, citations);
  return el(
    "section",
    { class: "evidence" },
    el("h3", {}, "Evidence"),
    citations.length ? el("ol", { class: "cited" }, citations.slice(0, MAX_ITEMS).map(citation)) : null,
    evidence.length ? el("ul", { class: "statements" }, evidence.slice(0, MAX_ITEMS).map(item)) : null,
    evidence.length > MAX_ITEMS ? note(`and ${counted(evidence.length - MAX_ITEMS, "more fact")}`) : null,
    [...places].slice(0, MAX_ITEMS).map(([id, spans], index) => passage(id, spans, index < OPEN)),
  );
}

function citation(each) {
  return el("li", {}, words(each.claim), each.quote ? [" ", words(each.quote, "q")] : null, " ", verified(each.verified), place(each.span));
}

function verified(holds) {
  return holds ? el("span", { class: "verified" }, "✓ verified") : el("span", { class: "warning" }, "not found in the text");
}

function item(each) {
  const quotes = (each.quotes ?? []).filter((quote) => clean(quote) && clean(quote) !== clean(each.words));
  const spans = each.spans ?? (each.span ? [each.span] : []);
  return el(
    "li",
    {},
    el("span", { class: "kind" }, clean(each.kind)),
    " ",
    each.kind === "quote" ? [words(each.words, "q"), " ", verified(each.verified)] : words(each.words),
    (each.participants ?? []).map((one) => [" ", el("span", { class: "note" }, words(one.role), ": ", nodeLink(one))]),
    quotes.map((quote) => [" ", words(quote, "q")]),
    spans.slice(0, 3).map(place),
  );
}

function place(span) {
  if (!span?.source) return null;
  return [" ", el("span", { class: "note", dir: "ltr" }, `[${clean(span.source)}, ${span.begin}–${span.end}]`)];
}

/** Collect the spans of each chunk, or of each document if their chunks are not named. */
function passages(evidence, citations) {
  const found = new Map();
  const spans = [...citations.map((each) => each.span), ...evidence.flatMap((each) => each.spans ?? [each.span])];
  for (const span of spans) {
    const id = span?.chunk || span?.document;
    if (!id) continue;
    if (!found.has(id)) found.set(id, []);
    found.get(id).push(span);
  }
  return found;
}

function passage(id, spans, open) {
  const text = el("div", { class: "chunk", dir: "auto" }, "…");
  const source = spans.find((span) => span.source)?.source || id;
  const title = words(source, "b");
  const box = el("details", { class: "passage" }, el("summary", {}, title, el("span", { class: "note" }, ` ${counted(spans.length, "quote")}`)), text);
  let asked = false;
  box.addEventListener("toggle", async () => {
    if (!box.open || asked) return;
    asked = true;
    try {
      const whole = Boolean(spans[0].chunk);
      const ends = { begin: Math.min(...spans.map((each) => each.begin)), end: Math.max(...spans.map((each) => each.end)) };
      const chunk = await get("/chunk", whole ? { id } : { id, ...ends });
      if (chunk.title) title.textContent = clean(chunk.title);
      text.replaceChildren(...marked(chunk.text, spans, whole ? 0 : chunk.begin));
      const first = text.querySelector("mark");
      if (first) text.scrollTop = first.offsetTop - text.offsetTop - 60;
    } catch (error) {
      asked = false;
      text.replaceChildren(problem(error));
    }
  });
  box.open = open;
  return box;
}

/** Return a text with its spans marked; positions count code points, `first` is the position of its first one. */
function marked(text, spans, first) {
  const letters = Array.from(text);
  const cuts = spans
    .map(({ begin, end }) => [Math.max(begin - first, 0), Math.min(end - first, letters.length)])
    .filter(([begin, end]) => begin < end)
    .sort((one, other) => one[0] - other[0]);
  const parts = [];
  let at = 0;
  for (const [begin, end] of cuts) {
    if (end <= at) continue;
    const from = Math.max(begin, at);
    parts.push(verbatim(letters.slice(at, from).join("")));
    parts.push(el("mark", {}, verbatim(letters.slice(from, end).join(""))));
    at = end;
  }
  parts.push(verbatim(letters.slice(at).join("")));
  return parts.filter((part) => part !== "");
}
