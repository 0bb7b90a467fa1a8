// The explorer: an entity, its relations and its neighbours in both directions.

import { get } from "./api.js";
import { complete } from "./completion.js";
import { drawNeighbours, fitted } from "./drawing.js";
import { button, byId, clean, counted, el, entityLink, nodeLink, note, problem, say, shorter, words } from "./dom.js";

const PAGE = 20;
let asked = null;
let shown = "";

/** Prepare the search of the explorer; `askAbout` is called with an entity that a question should be about. */
export function startExplorer(askAbout) {
  complete(byId("entity"), byId("entity-list"), (entity) => (location.hash = entityLink(entity.id)));
  startExplorer.askAbout = askAbout;
}

/** Show an entity with its neighbours; without an id, only the search. */
export async function explore(id) {
  const place = byId("around");
  if (!id) {
    shown = "";
    place.replaceChildren(note("Search an entity, then click on from neighbour to neighbour."));
    byId("entity").focus({ preventScroll: true });
    return "Explore";
  }
  if (id === shown) return clean(place.querySelector("h2")?.textContent);
  asked?.abort();
  asked = new AbortController();
  try {
    const around = await get("/neighbours", { id, limit: PAGE }, asked.signal);
    shown = id;
    place.replaceChildren(...entityParts(around));
    place.querySelector("h2").focus({ preventScroll: true });
    scrollTo(0, 0);
    const name = clean(around.name) || clean(around.id);
    say(`${name}: ${counted(around.relations.length, "relation")}`);
    return name;
  } catch (error) {
    if (error.name === "AbortError") return null;
    shown = "";
    place.replaceChildren(problem(error));
    return "Explore";
  }
}

function entityParts(around) {
  const { relations } = around;
  const sides = [
    ["Relations", relations.filter((each) => each.direction !== "in")],
    ["Relations that lead here", relations.filter((each) => each.direction === "in")],
  ];
  const types = (around.types ?? []).map((type) => el("span", { class: "kind" }, clean(type.name ?? type)));
  return [
    el(
      "header",
      { class: "entity" },
      words(shorter(around.name || around.id, 300), "h2", { tabindex: -1 }),
      el("p", { class: "note" }, el("code", { dir: "ltr" }, clean(around.id)), " ", types),
      button("Ask about this entity", () => startExplorer.askAbout({ id: around.id, name: around.name || around.id }), { class: "primary" }),
    ),
    relations.length ? fitted(el("div", { class: "canvas" }), (width) => drawNeighbours(around, width)) : note("This entity has no relations."),
    ...sides.filter(([, members]) => members.length).map(([title, members]) => side(title, members, around.id)),
    around.more ? note("More relations are not shown.") : null,
  ].filter(Boolean);
}

function side(title, relations, id) {
  return el("section", {}, el("h3", {}, title), el("dl", { class: "relations" }, relations.map((each) => relation(each, id))));
}

function relation(each, id) {
  const list = el("ul", { class: "nodes" }, each.nodes.map(nodeItem));
  const cell = el("dd", {}, list);
  const arrow = el("span", { class: "arrow", "aria-hidden": "true" }, each.direction === "in" ? "← " : "→ ");
  const count = each.count === null || each.count === undefined ? "" : each.count.toLocaleString("en");
  if (each.more) cell.append(moreButton(each, id, list));
  return el("div", {}, el("dt", { title: clean(each.iri) }, arrow, words(shorter(each.words, 120)), " ", el("span", { class: "count" }, count)), cell);
}

const nodeItem = (node) => el("li", {}, nodeLink(node));

function moreButton(each, id, list) {
  let offset = each.nodes.length;
  const pressed = button("more", async () => {
    pressed.disabled = true;
    try {
      const asks = { id, relation: each.iri, direction: each.direction, offset, limit: PAGE };
      const [next] = (await get("/neighbours", asks)).relations;
      const items = (next?.nodes ?? []).map(nodeItem);
      offset += items.length;
      list.append(...items);
      items[0]?.querySelector("a")?.focus();
      say(`${counted(items.length, "more neighbour")}`);
      if (!next?.more || !items.length) pressed.remove();
    } catch (error) {
      pressed.after(problem(error));
    }
    pressed.disabled = false;
  });
  pressed.setAttribute("aria-label", `more of ${clean(each.words)}`);
  pressed.classList.add("more");
  return pressed;
}
