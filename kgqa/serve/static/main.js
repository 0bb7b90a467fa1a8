// Starts the page: what the service offers, the views, and the addresses of answers and entities.

import { get, onTokenNeeded, setToken } from "./api.js";
import { showAnswer } from "./answer.js";
import { addTopic, followAnswer, keptAnswer, leave, setQuestion, startAsking } from "./asking.js";
import { byId, clean, counted, note, problem, say } from "./dom.js";
import { showEdits } from "./edits.js";
import { explore, startExplorer } from "./explorer.js";
import { remember, showHistory } from "./history.js";
import { startQuery } from "./query.js";

const TITLES = { ask: "Ask", explore: "Explore", query: "Query", edits: "Edits", history: "History" };
let about = {};
let shownAnswer = "";
let askTitle = "kgqa";

const answerId = () => decodeURIComponent(location.pathname.match(/^\/a\/([^/]+)$/u)?.[1] ?? "");

function viewOf(hash) {
  const name = hash.match(/^#(\w+)/u)?.[1];
  return Object.hasOwn(TITLES, name ?? "") ? name : "ask";
}

/** Show the view that the address names: the hash chooses the view, the path the answer. */
async function route() {
  const view = viewOf(location.hash);
  for (const section of document.querySelectorAll("main > section[data-view]")) section.hidden = section.dataset.view !== view;
  for (const link of document.querySelectorAll("#views a")) {
    if (link.dataset.view === view) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
  let title = `${TITLES[view]} – kgqa`;
  if (view === "ask") {
    await showKept();
    title = askTitle;
  } else if (view === "explore") {
    const found = await explore(decoded(location.hash.split("=").slice(1).join("=")));
    if (found === null) return;
    title = `${found} – kgqa`;
  } else if (view === "edits") showEdits(about.writable);
  else if (view === "history") showHistory();
  document.title = title;
}

function decoded(text) {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

async function showKept() {
  const id = answerId();
  if (id === shownAnswer) return;
  shownAnswer = id;
  leave();
  byId("answer").replaceChildren();
  byId("examples").hidden = Boolean(id);
  followAnswer(id);
  askTitle = `Ask – ${clean(about.graph?.name) || "kgqa"} – kgqa`;
  if (!id) return;
  byId("answer").replaceChildren(note("Loading…"));
  try {
    const answer = await keptAnswer(id);
    if (shownAnswer !== id) return;
    present(answer);
    setQuestion(answer.asked || answer.question);
  } catch (error) {
    byId("examples").hidden = false;
    byId("answer").replaceChildren(problem(error));
    askTitle = "No such answer – kgqa";
  }
}

function present(answer) {
  askTitle = showAnswer(byId("answer"), answer);
  if (!byId("view-ask").hidden) document.title = askTitle;
}

function answered(answer) {
  if (answer.id) {
    remember(answer);
    shownAnswer = answer.id;
    const hash = viewOf(location.hash) === "ask" ? "" : location.hash;
    history.pushState(null, "", `/a/${encodeURIComponent(answer.id)}${hash}`);
  }
  present(answer);
}

function askAbout(entity) {
  addTopic(entity);
  location.hash = "#ask";
  byId("question").focus();
}

async function start() {
  about = await get("/about");
  byId("login").hidden = true;
  const { graph = {} } = about;
  byId("graph").textContent = [clean(graph.name), graph.triples ? counted(graph.triples, "triple") : ""].filter(Boolean).join(" · ");
  byId("graph").title = clean(graph.place);
  byId("version").textContent = about.version ? `kgqa ${clean(about.version)} · ` : "";
  document.querySelector("#views [data-view=edits]").hidden = !about.corpus;
  startAsking(about, answered);
  startExplorer(askAbout);
  startQuery(about.query);
  addEventListener("hashchange", route);
  addEventListener("popstate", route);
  shownAnswer = null;
  await route();
  if (!location.hash && !answerId()) byId("question").focus({ preventScroll: true });
  document.documentElement.dataset.ready = "true";
}

function askForToken() {
  byId("login").hidden = false;
  for (const section of document.querySelectorAll("main > section[data-view]")) section.hidden = true;
  byId("token").focus();
}

byId("skip").addEventListener("click", (event) => {
  event.preventDefault();
  byId("main").focus();
});
byId("login-form").addEventListener("submit", (event) => {
  event.preventDefault();
  setToken(byId("token").value);
  byId("login-note").textContent = "";
  begin();
});
onTokenNeeded(askForToken);

function begin() {
  start().catch((error) => {
    if (error.status === 401) {
      if (byId("token").value) byId("login-note").textContent = "The service does not accept this token.";
      say(byId("login-note").textContent);
    } else byId("answer").replaceChildren(problem(error));
  });
}

begin();
