"use strict";
// Lists the matching questions, 200 at a time. Data is inserted as text nodes, never as HTML.
(() => {
  const PAGE = 200;
  const FILE = /^run-\d+\/\d{5,}-[0-9a-f]{12}\.html$/;
  const data = JSON.parse(document.getElementById("rows").textContent);
  const find = document.getElementById("find");
  const stage = document.getElementById("stage");
  const run = document.getElementById("run");
  const count = document.getElementById("count");
  const more = document.getElementById("more");
  const table = document.getElementById("questions");
  const body = table.tBodies[0];
  const words = data.rows.map((row) => row.slice(0, 4).join("\n").toLowerCase());
  let matching = [];
  let shown = 0;
  let last = null;

  function put(parent, name, text) {
    const element = parent.appendChild(document.createElement(name));
    if (text !== undefined && text !== null) element.textContent = text;
    return element;
  }

  function option(select, value, text) {
    put(select, "option", text).value = value;
  }

  function row(line) {
    const [id, text, dataset, kind, hops, results] = line;
    const tr = document.createElement("tr");
    const first = results.find((each) => each);
    const asked = put(tr, "td");
    asked.dir = "auto";
    link(asked, first, text || id);
    const about = put(asked, "span", [id, dataset, kind].filter(Boolean).join(" · "));
    about.className = "note about";
    about.dir = "auto";
    put(tr, "td", hops);
    for (const result of results) {
      const td = put(tr, "td");
      if (!result) continue;
      const [, where, hit] = result;
      td.className = where === 0 ? "right" : where === data.unscored ? "" : "wrong";
      link(td, result, data.stages[where] + (hit === null || where === 0 ? "" : ` (${hit}%)`));
    }
    return tr;
  }

  function link(parent, result, text) {
    if (result && FILE.test(result[0])) put(parent, "a", text).href = result[0];
    else put(parent, "span", text);
  }

  function showMore() {
    const part = document.createDocumentFragment();
    for (const place of matching.slice(shown, shown + PAGE)) part.appendChild(row(data.rows[place]));
    body.appendChild(part);
    shown = Math.min(matching.length, shown + PAGE);
    more.hidden = shown === matching.length;
    count.textContent = `${matching.length.toLocaleString("en")} of ${data.rows.length.toLocaleString("en")} questions`;
  }

  function search() {
    const asked = [find.value, stage.value, run.value].join("\n");
    // leaving the search box also fires an event; rows being clicked must stay
    if (asked === last) return;
    last = asked;
    const wanted = find.value.toLowerCase().split(/\s+/).filter(Boolean);
    const ended = stage.value === "" ? null : Number(stage.value);
    const only = run.value === "" ? null : Number(run.value);
    matching = [];
    data.rows.forEach((line, place) => {
      if (!wanted.every((word) => words[place].includes(word))) return;
      const results = only === null ? line[5] : [line[5][only]];
      const wrong = (where) => where !== 0 && where !== data.unscored;
      const there = results.some((each) => each && (ended === null || (ended < 0 ? wrong(each[1]) : each[1] === ended)));
      if (there) matching.push(place);
    });
    body.replaceChildren();
    shown = 0;
    showMore();
  }

  const head = put(table.tHead, "tr");
  for (const title of ["question", "hops", ...data.runs]) put(head, "th", title).dir = "auto";
  option(stage, "-1", "wrong (any cause)");
  const used = new Set(data.rows.flatMap((line) => line[5].filter(Boolean).map((each) => each[1])));
  data.stages.forEach((text, place) => used.has(place) && option(stage, place, text));
  data.runs.forEach((text, place) => option(run, place, text));
  find.addEventListener("input", search);
  find.addEventListener("change", search);
  stage.addEventListener("change", search);
  run.addEventListener("change", search);
  more.addEventListener("click", showMore);
  search();
})();
