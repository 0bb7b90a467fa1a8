// The list of questions on the index page, with the outcome of each run.
(() => {
  const data = JSON.parse(document.getElementById("rows").textContent);
  const filters = Object.fromEntries(["find", "outcome", "cause", "run"].map((id) => [id, document.getElementById(id)]));
  const results = data.rows.flatMap((line) => line[5].filter(Boolean));

  headings(document.getElementById("questions"), ["question", ...data.runs]);
  data.runs.forEach((text, place) => option(filters.run, place, text));
  option(filters.outcome, "not-right", "not right");
  data.outcomes.forEach(([name, , text], place) => results.some((each) => each[1] === place) && option(filters.outcome, name, text));
  data.stages.forEach(([name, text], place) => {
    const lost = name !== "right" && name !== "no gold";
    if (lost && results.some((each) => each[2] === place)) option(filters.cause, name || "unknown cause", text);
  });

  function row(place) {
    const line = data.rows[place];
    const tr = document.createElement("tr");
    questionCell(tr, line[5].find(Boolean)[0], line);
    line[5].forEach((result, run) => {
      const td = put(tr, "td", result ? null : "not asked");
      td.dataset.run = data.runs[run];
      if (!result) return td.classList.add("note");
      const [file, outcome, stage, hit] = result;
      const [name, cause] = data.stages[stage];
      const known = !["", "right", "no gold", "failed"].includes(name);
      const partly = data.outcomes[outcome][0] === "partly" && hit !== null;
      outcomeLink(td, file, data.outcomes[outcome], [known && cause, partly && `Hit@1 ${hit}%`].filter(Boolean).join(", "));
    });
    return tr;
  }

  function chosen(wanted, found) {
    const outcome = (each) => data.outcomes[each[1]][0];
    const fits = (each) =>
      (!wanted.outcome ||
        (wanted.outcome === "not-right" ? !["right", "no gold"].includes(outcome(each)) : outcome(each) === wanted.outcome)) &&
      (!wanted.cause || (data.stages[each[2]][0] || "unknown cause") === wanted.cause);
    const matching = [];
    data.rows.forEach((line, place) => {
      const asked = wanted.run === "" ? line[5] : [line[5][wanted.run]];
      if (found(place) && asked.some((each) => each && fits(each))) matching.push(place);
    });
    return matching;
  }

  showList({ rows: data.rows, filters, chosen, row });
})();
