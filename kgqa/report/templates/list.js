"use strict";
// A list of questions with filters. It shows the matching rows, 200 at a time, and keeps the filters in the URL's
// fragment. "/" goes to the search box, Escape clears it, the arrow keys go from row to row.
// Data is inserted as text nodes, never as HTML.
function put(parent, name, text) {
  const element = parent.appendChild(document.createElement(name));
  if (text !== undefined && text !== null) element.textContent = text;
  return element;
}

function link(parent, file, text) {
  if (!/^run-\d+\/\d{5,}-[0-9a-f]{12}\.html$/.test(file || "")) return put(parent, "span", text);
  const element = put(parent, "a", text);
  element.href = file;
  return element;
}

function option(select, value, text) {
  put(select, "option", text).value = value;
}

function headings(table, titles) {
  const head = put(table.tHead, "tr");
  for (const title of titles) {
    const th = put(head, "th", title);
    th.dir = "auto";
    th.scope = "col";
  }
}

function questionCell(tr, file, line) {
  const [id, text, dataset, kind, hops] = line;
  const td = put(tr, "td");
  td.dir = "auto";
  td.className = "asked";
  link(td, file, text || id);
  const steps = hops === null ? "" : `${hops} ${hops === 1 ? "hop" : "hops"}`;
  const about = put(put(td, "div"), "span", [id, dataset, kind, steps].filter(Boolean).join(" · "));
  about.className = "note";
  about.dir = "auto";
  return td;
}

function outcomeLink(td, file, outcome, more) {
  const [name, sign, words] = outcome;
  td.classList.add("outcome", name.replace(/\W+/g, "-"));
  const mark = put(td, "span", sign);
  mark.className = "sign";
  mark.setAttribute("aria-hidden", "true");
  link(td, file, words);
  if (more) put(td, "span", more).className = "note";
}

// rows: the data; words: a text per row to search in; filters: the form controls by their names in the URL;
// chosen(values): the numbers of the rows that match, in the order in which they are shown;
// row(number): the <tr> of a row
function showList({ rows, filters, chosen, row }) {
  const PAGE = 200;
  const find = filters.find;
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const body = document.getElementById("questions").tBodies[0];
  const words = rows.map((line) => line.slice(0, 4).join("\n").toLowerCase());
  const initial = values();
  let matching = [];
  let shown = 0;
  let last = null;
  let saving = 0;

  function values() {
    return Object.fromEntries(Object.entries(filters).map(([name, control]) => [name, control.value]));
  }

  function showMore() {
    const part = document.createDocumentFragment();
    for (const place of matching.slice(shown, shown + PAGE)) part.appendChild(row(place));
    body.appendChild(part);
    shown = Math.min(matching.length, shown + PAGE);
    more.hidden = shown === matching.length;
  }

  function search() {
    const now = values();
    const state = JSON.stringify(now);
    // leaving the search box also fires an event; rows being clicked must stay
    if (state === last) return;
    last = state;
    const wanted = now.find.toLowerCase().split(/\s+/).filter(Boolean);
    matching = chosen(now, (place) => wanted.every((word) => words[place].includes(word)));
    body.replaceChildren();
    shown = 0;
    showMore();
    count.textContent = `${matching.length.toLocaleString("en")} of ${rows.length.toLocaleString("en")} questions`;
    clearTimeout(saving);
    saving = setTimeout(save, 200); // browsers limit how often the address may change
  }

  function save() {
    const kept = new URLSearchParams(Object.entries(values()).filter(([name, value]) => value !== initial[name]));
    const hash = kept.size ? `#${kept}` : "";
    if (hash !== location.hash) history.replaceState(null, "", hash || location.href.split("#")[0]);
  }

  function restore() {
    const kept = new URLSearchParams(location.hash.slice(1));
    for (const [name, control] of Object.entries(filters)) {
      control.value = kept.get(name) ?? initial[name];
      if (control.value === "" && control.tagName === "SELECT") control.value = initial[name];
    }
    search();
  }

  function move(by) {
    const links = [...body.querySelectorAll("tr td:first-child a")];
    const place = links.indexOf(document.activeElement.closest("tr")?.querySelector("td:first-child a"));
    if (by < 0 && place <= 0) find.focus();
    else (links[place + by] || links.at(-1))?.focus();
  }

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName);
    const inList = event.target === find || body.contains(event.target);
    if (event.key === "/" && !typing) find.focus();
    else if (event.key === "Escape" && event.target === find) find.value = "";
    else if (event.key === "ArrowDown" && inList) move(1);
    else if (event.key === "ArrowUp" && body.contains(event.target)) move(-1);
    else return;
    event.preventDefault();
    search();
  });
  for (const control of Object.values(filters)) {
    control.addEventListener("input", search);
    control.addEventListener("change", search);
  }
  more.addEventListener("click", showMore);
  window.addEventListener("hashchange", restore);
  window.addEventListener("pagehide", save);
  restore();
}
