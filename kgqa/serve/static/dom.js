// Makes elements. Text from data is only ever set as text, never as HTML.

const SVG = "http://www.w3.org/2000/svg";
const LONGEST = 2000;
const LONGEST_NAME = 160;
const LONGEST_LITERAL = 400;
const HIDDEN = /[\p{Cc}\p{Cf}\p{Cs}\p{Co}\p{Cn}]/gu;

/** Return a text as one line without control and direction characters, like `kgqa.words.clean`. */
export function clean(text) {
  return String(text ?? "").replace(/[\s\u0085]+/gu, " ").replace(HIDDEN, "").trim();
}

/** Return a text with its line breaks; control and direction characters become blanks, so that positions stay. */
export function verbatim(text) {
  return String(text ?? "").replace(HIDDEN, (found) => (found === "\n" || found === "\t" ? found : " "));
}

/** Shorten a clean text to at most `most` characters. */
export function shorter(text, most) {
  const letters = Array.from(clean(text));
  return letters.length <= most ? letters.join("") : letters.slice(0, most - 1).join("") + "…";
}

function build(element, attributes, children) {
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (value === null || value === undefined || value === false) continue;
    if (name.startsWith("on")) element.addEventListener(name.slice(2), value);
    else element.setAttribute(name, value === true ? "" : value);
  }
  element.append(...children.flat(9).filter((child) => child !== null && child !== undefined && child !== false));
  return element;
}

/** Make an HTML element; children are elements or texts. */
export const el = (name, attributes, ...children) => build(document.createElement(name), attributes, children);

/** Make an SVG element. */
export const svg = (name, attributes, ...children) => build(document.createElementNS(SVG, name), attributes, children);

/** Make an element with text from data; its direction follows from the text. */
export const words = (text, name = "span", attributes = {}) => el(name, { dir: "auto", ...attributes }, shorter(text, LONGEST));

export const byId = (id) => document.getElementById(id);
export const note = (...children) => el("p", { class: "note" }, ...children);

/** Format a count with its noun: `1 hop`, `2 hops`. */
export function counted(number, one, many = one + "s") {
  return `${number.toLocaleString("en")} ${number === 1 ? one : many}`;
}

/** Say something to screen readers. */
export function say(text) {
  byId("live").textContent = clean(text);
}

/** Show an error: what is wrong, then what to do. */
export function problem(error) {
  say(error.message);
  return el("p", { class: "problem", role: "alert" }, words(error.message), error.hint ? [" ", words(error.hint)] : null);
}

export function button(text, action, attributes = {}) {
  return el("button", { type: "button", onclick: action, ...attributes }, text);
}

/** Make a button that copies a text. */
export function copyButton(text, label = "Copy") {
  return button(label, async (event) => {
    const pressed = event.currentTarget;
    let done = true;
    try {
      await navigator.clipboard.writeText(text);
    } catch {
      const area = el("textarea", { class: "hidden" });
      area.value = text;
      document.body.append(area);
      area.select();
      done = document.execCommand("copy");
      area.remove();
      pressed.focus();
    }
    pressed.textContent = done ? "Copied" : "Copying is not allowed";
    say(pressed.textContent);
    setTimeout(() => (pressed.textContent = label), 2000);
  });
}

/** Make a link to an entity in the explorer; literals are plain text. */
export function nodeLink(node, attributes = {}) {
  const name = clean(node.words) || clean(node.description) || clean(node.name ?? node.value) || clean(node.id) || "(no name)";
  const long = name.length > (node.id ? LONGEST_NAME : LONGEST_LITERAL) ? { title: shorter(name, LONGEST) } : {};
  if (!node.id) {
    const text = shorter(node.unit ? `${name} ${node.unit}` : name, LONGEST_LITERAL);
    return words(text, "span", { class: "literal", ...long, ...attributes });
  }
  const record = node.words ? { class: "record", title: clean(node.id) } : {};
  return el("a", { href: entityLink(node.id), dir: "auto", ...long, ...record, ...attributes }, shorter(name, LONGEST_NAME));
}

export const entityLink = (id) => `#explore=${encodeURIComponent(id)}`;

/** Return the readable end of an IRI; of a dotted name its last two parts. */
export function relationName(iri) {
  let local = String(iri).replace(/[/#]+$/u, "").split(/[#/]/u).pop();
  try {
    local = decodeURIComponent(local);
  } catch {
    // not percent-encoded
  }
  const parts = local.split(":").pop().split(".").filter(Boolean).slice(-2);
  const split = (part) => part.replace(/[_-]+/gu, " ").replace(/(\p{Ll})(\p{Lu})/gu, "$1 $2").toLowerCase();
  return clean(parts.map(split).join(" · ")) || clean(iri);
}
