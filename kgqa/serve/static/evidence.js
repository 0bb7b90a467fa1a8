// Evidence over text: statements and quotes, and the chunks in which the quotes are marked.

import { get } from "./api.js";
import { clean, counted, el, nodeLink, note, problem, verbatim, words } from "./dom.js";

const MAX_ITEMS = 40;
const OPEN = 2;
const NEAR = 600;
const LONGEST = 4000;
const MAX_PARTS = 5;

/** Show the citations and the evidence of an answer, and the passages in which they stand. */
export function evidenceSection(answer) {
  const citations = answer.citations ?? [];
  const cited = new Set(citations.map((each) => JSON.stringify([each.quote, each.span])));
  const evidence = (answer.evidence ?? []).filter((each) => !cited.has(JSON.stringify([each.words, each.span])));
  if (!evidence.length && !citations.length) return null;
  const places = passages(evidence, citations);
  return el(
    "section",
    { class: "evidence" },
    el("h3", {}, "Evidence"),
    citations.length ? el("ol", { class: "cited" }, citations.slice(0, MAX_ITEMS).map(citation)) : null,
    evidence.length ? el("ul", { class: "statements" }, evidence.slice(0, MAX_ITEMS).map(item)) : null,
    evidence.length > MAX_ITEMS ? note(`and ${counted(evidence.length - MAX_ITEMS, "more fact")}`) : null,
    places.slice(0, MAX_ITEMS).map(([id, spans], index) => passage(id, spans, index < OPEN)),
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

/** Collect the spans of each document, each span once. */
function passages(evidence, citations) {
  const found = new Map();
  const spans = [...citations.map((each) => each.span), ...evidence.flatMap((each) => each.spans ?? [each.span])];
  for (const span of spans) {
    if (!span?.document) continue;
    if (!found.has(span.document)) found.set(span.document, new Map());
    found.get(span.document).set(`${span.chunk} ${span.begin} ${span.end}`, span);
  }
  return [...found].map(([id, each]) => [id, [...each.values()]]);
}

function passage(id, spans, open) {
  const texts = el("div", {}, note("…"));
  const source = spans.find((span) => span.source)?.source || id;
  const title = words(source, "b");
  const count = el("span", { class: "note" }, ` ${counted(spans.length, "quote")}`);
  const box = el("details", { class: "passage" }, el("summary", {}, title, count), texts);
  let asked = false;
  box.addEventListener("toggle", async () => {
    if (!box.open || asked) return;
    asked = true;
    try {
      const excerpts = await excerptsOf(id, spans);
      if (excerpts[0].title) title.textContent = clean(excerpts[0].title);
      texts.replaceChildren(...excerpts.map(excerptBox));
      for (const each of texts.children) {
        const first = each.querySelector("mark");
        if (first) each.scrollTop = first.offsetTop - each.offsetTop - 60;
      }
    } catch (error) {
      asked = false;
      texts.replaceChildren(problem(error));
    }
  });
  box.open = open;
  return box;
}

/** Get the parts of a document around spans; spans that are near each other share a part. */
async function excerptsOf(id, spans) {
  const chunks = [...new Set(spans.map((span) => span.chunk).filter(Boolean))];
  const begins = new Map(await Promise.all(chunks.map(async (chunk) => [chunk, (await get("/chunk", { id: chunk })).begin])));
  const places = spans
    .map(({ chunk, begin, end }) => ({ begin: begin + (begins.get(chunk) ?? 0), end: end + (begins.get(chunk) ?? 0) }))
    .sort((one, other) => one.begin - other.begin);
  const parts = [];
  for (const each of places) {
    const last = parts.at(-1);
    if (last && each.begin - last.end < NEAR && each.end - last.begin < LONGEST) {
      last.end = Math.max(last.end, each.end);
      last.places.push(each);
    } else parts.push({ ...each, places: [each] });
  }
  const asks = parts.slice(0, MAX_PARTS).map(async ({ begin, end, places: marks }) => ({ ...(await get("/chunk", { id, begin, end })), marks }));
  return Promise.all(asks);
}

function excerptBox({ text, begin, marks }) {
  return el("div", { class: "chunk", dir: "auto", tabindex: 0, role: "group", "aria-label": "Passage" }, marked(text, marks, begin));
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
