// Draws a path with its walks, and an entity with its neighbours. Each entity is a link to the explorer.

import { clean, entityLink, relationName, shorter, svg } from "./dom.js";

const MAX_WALKS = 8;
const LETTER = 7;
let drawings = 0;

/** Return words for each step of a path: those of the path if they can be told apart, else the names of the relations. */
export function stepWords(path) {
  const parts = clean(path.words).split(/ [→←·] /u).slice(1);
  return path.steps.map((step, index) => (parts.length === path.steps.length ? parts[index] : relationName(step.relation)));
}

/** Return the walks of a path; without walks, its shape with variables. */
export function walksOf(path) {
  const walks = (path.walks ?? []).filter((walk) => walk.length);
  if (walks.length) return walks.map((walk) => walk.slice(0, path.steps.length + 1));
  return [[{ iri: path.topic, name: relationName(path.topic) }, ...path.steps.map((_, index) => ({ name: `?${index + 1}` }))]];
}

/** Draw a path, from left to right if it fits the width, else from top to bottom. */
export function drawPath(path, width) {
  if (!path.steps?.length) return null;
  const columns = columnsOf(path);
  const upright = columns.length * 150 > width;
  return upright ? drawDown(path, columns, width) : drawAcross(path, columns, width);
}

function columnsOf(path) {
  const columns = Array.from({ length: path.steps.length + 1 }, () => new Map());
  for (const walk of walksOf(path).slice(0, MAX_WALKS)) {
    let before = null;
    walk.forEach((node, column) => {
      const key = node.iri || node.id || node.value || node.name;
      if (!columns[column].has(key)) columns[column].set(key, { node, column, from: new Set() });
      const found = columns[column].get(key);
      if (before) found.from.add(before);
      before = found;
    });
  }
  return columns.map((column, index) => {
    const kind = kindOf(path, index);
    return [...column.values()].map((each) => ({ ...each, from: each.from, kind, self: each }));
  });
}

function kindOf(path, index) {
  if (index === 0) return "topic";
  if (index === path.steps.length) return "answer";
  return (path.mediators ?? []).includes(index) ? "mediator" : "inner";
}

function drawAcross(path, columns, width) {
  const step = Math.min(300, Math.floor((width - 150) / Math.max(columns.length - 1, 1)));
  const letters = Math.floor((Math.min(step, 190) - 12) / LETTER);
  const rows = Math.max(...columns.map((column) => column.length));
  const top = rows > 1 ? 54 : 44;
  const height = top + rows * 62;
  const places = new Map();
  columns.forEach((column, index) => {
    column.forEach((each, row) => {
      const y = top + ((rows - column.length) / 2 + row) * 62;
      places.set(each.self, { x: 75 + index * step, y });
    });
  });
  const names = stepWords(path);
  const tip = `tip${(drawings += 1)}`;
  const edges = columns.flat().flatMap((each) =>
    [...each.from].map((parent) => arrow(places.get(parent), places.get(each.self), path.steps[each.column - 1], tip)),
  );
  const labels = names.map((name, index) =>
    lines(name, Math.floor(step / 6.3), 75 + (index + 0.5) * step, 16, "relation mid", path.steps[index].relation),
  );
  const nodes = columns.flat().map((each) => {
    const { x, y } = places.get(each.self);
    return node(each, x, y, lines(shownName(each), letters, x, y + 25, "mid", ""));
  });
  return frame(150 + (columns.length - 1) * step, height, tip, [...labels, ...edges, ...nodes]);
}

function drawDown(path, columns, width) {
  const names = stepWords(path);
  const tip = `tip${(drawings += 1)}`;
  const places = new Map();
  const parts = [];
  let y = 4;
  columns.forEach((column, index) => {
    const x = 12 + Math.min(index, 8) * 20;
    const letters = Math.max(8, Math.floor((width - x - 20) / LETTER));
    if (index) {
      y += 30;
      const arrows = path.steps[index - 1].direction === "in" ? "← " : "→ ";
      parts.push(label(arrows + names[index - 1], letters, x + 18, y, "relation", path.steps[index - 1].relation));
    }
    column.forEach((each) => {
      y += index ? 24 : 14;
      places.set(each.self, { x, y });
      const text = label(shownName(each), letters, x + 18, y + 4, "", "");
      for (const parent of each.from) {
        const from = places.get(parent);
        const back = path.steps[index - 1].direction === "in";
        const d = `M${from.x} ${from.y + 11}V${y}H${x - (back ? 8 : 12)}`;
        parts.push(svg("path", { class: "edge", d, [back ? "marker-start" : "marker-end"]: `url(#${tip})` }));
      }
      parts.push(node(each, x, y, text));
    });
  });
  return frame(width, y + 18, tip, parts);
}

/** Draw an entity with some of its neighbours; `around` is a reply of /neighbours. */
export function drawNeighbours(around, width) {
  const found = fewNeighbours(around, width < 620 ? 3 : 6);
  if (!found.length) return null;
  return width < 620 ? listBelow(around, found, width) : bothSides(around, found, width);
}

/** Choose neighbours to draw: different ones, of as many relations as possible, at most `most` on each side if both have some. */
function fewNeighbours({ id, relations }, most) {
  const seen = new Set([id]);
  const found = { in: [], out: [] };
  const sides = new Set(relations.map((each) => each.direction)).size;
  for (let turn = 0; turn < 4; turn += 1) {
    for (const relation of relations) {
      const one = relation.nodes[turn];
      const key = one && (one.id ?? one.value);
      const side = found[relation.direction];
      if (!one || seen.has(key) || side.length >= (sides === 1 ? 2 * most : most)) continue;
      seen.add(key);
      side.push({ node: one, relation, kind: one.id && !one.words ? "inner" : "mediator" });
    }
  }
  return [...found.in, ...found.out];
}

function bothSides(around, found, width) {
  const tip = `tip${(drawings += 1)}`;
  const sides = { in: [], out: [] };
  for (const each of found) sides[each.relation.direction === "in" ? "in" : "out"].push(each);
  const rows = Math.max(sides.in.length, sides.out.length);
  const height = rows * 44 + 24;
  const middle = { x: sides.in.length && sides.out.length ? width / 2 : sides.in.length ? width - 140 : 140, y: height / 2 };
  const parts = [];
  for (const [side, members] of Object.entries(sides)) {
    members.forEach((each, row) => {
      const left = side === "in";
      const x = left ? 190 : width - 190;
      const y = 22 + ((rows - members.length) / 2 + row + 0.5) * 44 - 10;
      const [from, to] = left ? [{ x: x + 10, y }, { x: middle.x - 14, y: middle.y }] : [{ x: middle.x + 14, y: middle.y }, { x: x - 10, y }];
      const d = left
        ? `M${from.x} ${from.y}H${to.x - 90}C${to.x - 30} ${from.y} ${to.x - 60} ${to.y} ${to.x} ${to.y}`
        : `M${from.x} ${from.y}C${from.x + 60} ${from.y} ${from.x + 30} ${to.y} ${from.x + 90} ${to.y}H${to.x}`;
      parts.push(svg("path", { class: "edge", d, "marker-end": `url(#${tip})` }));
      const room = Math.floor((Math.abs(middle.x - x) - 105) / 5.7);
      const anchor = left ? x + 14 : x - 14;
      parts.push(label(each.relation.words, room, anchor, y - 7, left ? "relation" : "relation end", each.relation.iri));
      const text = label(nameOf(each.node), 23, left ? x - 14 : x + 14, y + 4, left ? "end" : "", "");
      parts.push(node(each, x, y, text));
    });
  }
  const name = lines(nameOf(around), 26, middle.x, middle.y + 28, "mid strong", "");
  parts.push(node({ node: around, kind: "topic", here: true }, middle.x, middle.y, name));
  return frame(width, height + 8, tip, parts);
}

function listBelow(around, found, width) {
  const tip = `tip${(drawings += 1)}`;
  const letters = Math.floor((width - 60) / LETTER);
  const parts = [node({ node: around, kind: "topic", here: true }, 12, 14, label(nameOf(around), letters, 30, 18, "strong", ""))];
  found.forEach((each, row) => {
    const y = 64 + row * 46;
    const back = each.relation.direction === "in";
    parts.push(svg("path", { class: "edge", d: `M12 25V${y}H24` }));
    parts.push(label((back ? "← " : "→ ") + clean(each.relation.words), letters, 50, y - 14, "relation", each.relation.iri));
    parts.push(node(each, 34, y, label(nameOf(each.node), letters, 50, y + 4, "", "")));
  });
  return frame(width, 64 + found.length * 46 - 26, tip, parts);
}

/** Return the name of a node in a drawing; a mediator that has only an id is a dot without a name. */
const shownName = (each) => (each.kind === "mediator" && nameOf(each.node) === clean(each.node.id) ? "" : nameOf(each.node));
const nameOf = (one) => clean(one.words) || clean(one.name ?? one.value) || clean(one.id) || "(no name)";

function node(each, x, y, text) {
  const full = nameOf(each.node);
  const id = each.node.id && !full.startsWith("?") ? each.node.id : null;
  const circle = svg("circle", { cx: x, cy: y, r: each.kind === "mediator" ? 5 : 9 });
  const title = svg("title", {}, id && clean(id) !== full ? `${full} (${clean(id)})` : full);
  const attributes = { class: `node ${each.kind}` };
  if (!id || each.here) return svg("g", attributes, title, circle, text);
  return svg("a", { ...attributes, href: entityLink(id) }, title, circle, text);
}

function arrow(from, to, step, tip) {
  const length = Math.hypot(to.x - from.x, to.y - from.y) || 1;
  const [dx, dy] = [((to.x - from.x) / length) * 14, ((to.y - from.y) / length) * 14];
  const ends = { x1: from.x + dx, y1: from.y + dy, x2: to.x - dx, y2: to.y - dy };
  return svg("line", { class: "edge", ...ends, [step.direction === "in" ? "marker-start" : "marker-end"]: `url(#${tip})` });
}

function label(text, letters, x, y, kind, full) {
  const title = full ? svg("title", {}, clean(full)) : null;
  return svg("text", { x, y, class: kind }, title, shorter(text, Math.max(letters, 6)));
}

/** Return a text of at most two lines. */
function lines(text, letters, x, y, kind, full) {
  const [first, second] = halves(clean(text), Math.max(letters, 8));
  const rows = [svg("tspan", { x, y }, first)];
  if (second) rows.push(svg("tspan", { x, dy: 14 }, second));
  return svg("text", { class: kind }, full ? svg("title", {}, clean(full)) : null, rows);
}

function halves(text, letters) {
  if (Array.from(text).length <= letters) return [text, ""];
  const at = text.lastIndexOf(" ", letters);
  if (at < letters / 3) return [shorter(text, letters), ""];
  return [text.slice(0, at), shorter(text.slice(at + 1), letters)];
}

function frame(width, height, tip, parts) {
  const marker = svg(
    "marker",
    { id: tip, viewBox: "0 0 10 10", refX: 9, refY: 5, markerWidth: 7, markerHeight: 7, orient: "auto-start-reverse" },
    svg("path", { class: "tip", d: "M0 0 L10 5 L0 10 z" }),
  );
  const size = { viewBox: `0 0 ${width} ${height}`, width, height };
  return svg("svg", { class: "drawing", ...size, role: "group", "aria-label": "Drawing" }, svg("defs", {}, marker), parts);
}

/** Keep a drawing as wide as its element; `draw` makes it for a width. */
export function fitted(element, draw) {
  let last = 0;
  const observer = new ResizeObserver(([entry]) => {
    const width = Math.floor(entry.contentRect.width);
    if (!element.isConnected) observer.disconnect();
    else if (width && width !== last) {
      last = width;
      element.replaceChildren(...[draw(width)].filter(Boolean));
    }
  });
  observer.observe(element);
  return element;
}
