// Two runs question by question: the questions on which they differ come first.
(() => {
  const data = JSON.parse(document.getElementById("rows").textContent);
  const filters = Object.fromEntries(["find", "show", "a", "b", "metric"].map((id) => [id, document.getElementById(id)]));
  const buttons = [...document.querySelectorAll("#shown button")];
  const verdict = document.getElementById("verdict");
  const table = document.getElementById("questions");
  const SIDES = { a: "only A right", b: "only B right", both: "both right", neither: "neither right", apart: "not comparable" };
  let sides = [];

  data.metrics.forEach(([name, text]) => option(filters.metric, name, text));
  data.runs.forEach((text, place) => {
    option(filters.a, place, text);
    option(filters.b, place, text);
  });
  filters.b.value = "1";

  const score = (result, metric) => (result ? result[metric === "em" ? 2 : 3] : null);

  function sideOf(line, wanted) {
    const [one, other] = [wanted.a, wanted.b].map((run) => score(line[6][run], wanted.metric));
    if (one === null || other === null) return "apart";
    if (one === 1) return other === 1 ? "both" : "a";
    return other === 1 ? "b" : "neither";
  }

  function rank(place, wanted) {
    if (sides[place] === "a" || sides[place] === "b") return 0;
    const [one, other] = [wanted.a, wanted.b].map((run) => data.rows[place][6][run]);
    return one && other && one[4] === other[4] ? 2 : 1;
  }

  function summarise(wanted) {
    const counts = { "": sides.length, a: 0, b: 0, both: 0, neither: 0, apart: 0 };
    for (const side of sides) counts[side] += 1;
    counts.differ = counts.a + counts.b;
    for (const button of buttons) {
      const name = button.value;
      button.querySelector("span").textContent = counts[name].toLocaleString("en");
      button.setAttribute("aria-pressed", String(name === wanted.show));
      button.hidden = name === "apart" && !counts.apart;
    }
    const test = (data.tests[`${wanted.a}-${wanted.b}`] || {})[wanted.metric];
    verdict.textContent = test || "These runs have no scored question in common.";
    table.tHead.replaceChildren();
    headings(table, ["question", `A: ${data.runs[wanted.a]}`, `B: ${data.runs[wanted.b]}`]);
  }

  function chosen(wanted, found) {
    sides = data.rows.map((line) => sideOf(line, wanted));
    summarise(wanted);
    const fits = (side) => !wanted.show || side === wanted.show || (wanted.show === "differ" && (side === "a" || side === "b"));
    const matching = [...data.rows.keys()].filter((place) => fits(sides[place]) && found(place));
    const ranks = matching.map((place) => rank(place, wanted));
    // the list is in the order of the file; sorting by rank alone would lose it
    return [0, 1, 2].flatMap((wantedRank) => matching.filter((_, at) => ranks[at] === wantedRank));
  }

  function row(place) {
    const line = data.rows[place];
    const tr = document.createElement("tr");
    const asked = [filters.a.value, filters.b.value].map((run) => line[6][run]);
    const first = (asked.find(Boolean) || line[6].find(Boolean))[0];
    const cell = questionCell(tr, first, line);
    const side = put(cell.lastChild, "span", SIDES[sides[place]]);
    side.className = `side ${sides[place]}`;
    if (line[5]) {
      const gold = put(cell, "span", `gold: ${line[5]}`);
      gold.className = "gold";
      gold.dir = "auto";
    }
    asked.forEach((result, at) => {
      const td = put(tr, "td", result ? null : "not asked");
      td.dataset.run = "AB"[at];
      if (!result) return td.classList.add("note");
      const [file, outcome, , , answers, calls] = result;
      outcomeLink(td, file, data.outcomes[outcome]);
      const given = put(td, "span", answers || "no answer");
      given.className = answers ? "given" : "given note";
      given.dir = "auto";
      if (calls) put(td, "span", `${calls.toLocaleString("en")} ${calls === 1 ? "model call" : "model calls"}`).className = "note about";
    });
    return tr;
  }

  for (const button of buttons) {
    button.addEventListener("click", () => {
      filters.show.value = button.value;
      filters.show.dispatchEvent(new Event("change"));
    });
  }
  showList({ rows: data.rows, filters, chosen, row });
})();
