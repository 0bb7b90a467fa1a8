// Edits of a corpus: a difference with its sources, accepted or rejected if the service may write.

import { get, post } from "./api.js";
import { button, byId, clean, counted, el, note, problem, say, words } from "./dom.js";

/** Show the edits of the corpus; `writable`: whether they can be decided here. */
export async function showEdits(writable) {
  const place = byId("edit-list");
  try {
    const reply = await get("/edits");
    place.replaceChildren(
      note(reply.waiting ? `${counted(reply.waiting, "edit")} to review.` : "No edit waits for a review.", writable ? "" : " This service does not change the corpus; decide with kgqa edits review."),
      el("ol", { class: "proposals" }, reply.edits.map((each) => proposal(each, writable))),
      reply.total > reply.edits.length ? note(`and ${counted(reply.total - reply.edits.length, "earlier edit")}`) : "",
    );
  } catch (error) {
    place.replaceChildren(problem(error));
  }
}

const waits = (edit) => edit.state === "waiting" || edit.state === "held";

function proposal(edit, writable) {
  const outcome = edit.state === "live" ? "accepted" : edit.state === "rejected" || edit.state === "gated" ? "rejected" : "";
  const box = el(
    "li",
    { class: `proposal ${outcome}`, tabindex: -1 },
    el("h2", {}, clean(edit.kind), " ", el("span", { class: `badge ${outcome}` }, clean(edit.state))),
    el("div", { class: "diff" }, difference(edit)),
    edit.question ? el("p", { class: "note" }, "For the question ", words(edit.question, "q")) : null,
    edit.reason ? el("p", { class: "note" }, "Reason: ", words(edit.reason)) : null,
    edit.why ? el("p", { class: "note" }, words(edit.why)) : null,
    sources(edit),
    el("p", { class: "note" }, words([edit.agent, edit.at, edit.decided].map(clean).filter(Boolean).join(" · "))),
  );
  if (writable && waits(edit)) box.append(decisions(edit, box, writable));
  return box;
}

function difference({ removes = [], adds = [] }) {
  const line = (kind, sign, text, other) =>
    el("p", { class: kind }, el("span", { class: "sign", "aria-hidden": "true" }, sign), el(kind === "old" ? "del" : "ins", { dir: "auto" }, changes(clean(text), clean(other))));
  return [
    ...removes.map((text, index) => line("old", "−", text, adds[index] ?? "")),
    ...adds.map((text, index) => line("new", "+", text, removes[index] ?? "")),
  ];
}

/** Mark what a text does not share with another at its beginning and its end. */
function changes(text, other) {
  if (!other) return [text];
  const [one, two] = [text.split(" "), other.split(" ")];
  let head = 0;
  while (head < one.length && one[head] === two[head]) head += 1;
  let tail = 0;
  while (tail < Math.min(one.length, two.length) - head && one.at(-1 - tail) === two.at(-1 - tail)) tail += 1;
  const middle = one.slice(head, one.length - tail).join(" ");
  if (!middle) return [text];
  return [one.slice(0, head).join(" "), head ? " " : "", el("b", {}, middle), tail ? " " : "", one.slice(one.length - tail).join(" ")];
}

function sources({ sources: found = [] }) {
  if (!found.length) return note("No source was given.");
  const item = (each) =>
    el("li", {}, each.quote ? [words(each.quote, "q"), " "] : null, el("code", { dir: "ltr" }, clean(each.iri)), each.trust ? [" ", el("span", { class: "kind" }, `trust: ${clean(each.trust)}`)] : null);
  return el("details", { open: true }, el("summary", {}, counted(found.length, "source")), el("ul", { class: "sources" }, found.map(item)));
}

function decisions(edit, box, writable) {
  const decide = (decision, done) => async () => {
    try {
      await post(`/edits/${encodeURIComponent(edit.id)}/${decision}`);
      await showEdits(writable);
      say(done);
    } catch (error) {
      box.append(problem(error));
    }
  };
  return el(
    "div",
    { class: "row buttons" },
    button("Accept", decide("accept", "Accepted"), { class: "primary" }),
    button("Reject", decide("reject", "Rejected")),
  );
}
