// The question box: what is asked, the live steps, and Stop.

import { events, get, post } from "./api.js";
import { complete } from "./completion.js";
import { byId, button, clean, counted, el, note, problem, say, words } from "./dom.js";

const MAX_STEPS = 150;
const SAY_EVERY = 3000;
const STOP_WAIT = 4000;
const NO_MODEL = "none";

let methods = [];
let models = [];
let topics = [];
let running = null;
let thread = [];

/** Prepare the question box for a graph; call `done` with each answer. */
export function startAsking(about, done) {
  methods = about.methods ?? [];
  byId("method").replaceChildren(...methods.map((each) => el("option", { value: each.name }, clean(each.name))));
  models = about.models ?? [];
  if (about.method) byId("method").value = about.method;
  byId("model-box").hidden = !models.length;
  byId("method").addEventListener("change", showMethod);
  showMethod();
  byId("model").value = about.model || NO_MODEL;
  byId("examples").replaceChildren(
    ...(about.examples ?? []).map((text) => button(clean(text), () => askText(text, done), { class: "example", dir: "auto" })),
  );
  complete(byId("topic"), byId("topic-list"), addTopic);
  const question = byId("question");
  question.addEventListener("input", () => fit(question));
  addEventListener("resize", () => fit(question));
  question.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && !event.shiftKey && !event.isComposing) {
      event.preventDefault();
      byId("ask-form").requestSubmit();
    }
  });
  byId("ask-form").addEventListener("submit", (event) => {
    event.preventDefault();
    ask(done);
  });
  byId("stop").addEventListener("click", stop);
}

function fit(area) {
  area.style.height = "auto";
  area.style.height = `${Math.min(area.scrollHeight + 2, 220)}px`;
}

function showMethod() {
  const chosen = methods.find((each) => each.name === byId("method").value);
  const before = byId("model").value;
  const offered = chosen?.model ? models : [...models, NO_MODEL];
  byId("model").replaceChildren(...offered.map((name) => el("option", { value: name }, clean(name))));
  if (offered.includes(before)) byId("model").value = before;
  byId("summary").textContent = clean(chosen?.summary);
}

/** Put a question into the box, and ask it. */
export function askText(text, done) {
  setQuestion(text);
  setTopics([]);
  ask(done);
}

/** Put a question into the box. */
export function setQuestion(text) {
  byId("question").value = text;
  fit(byId("question"));
}

/** Add an entity that the question is about. */
export function addTopic(entity) {
  if (!topics.some((each) => each.id === entity.id)) setTopics([...topics, entity]);
  say(`${clean(entity.name)} added`);
}

function setTopics(entities) {
  topics = entities;
  byId("topics").replaceChildren(
    ...entities.map((entity) => {
      const name = clean(entity.name) || clean(entity.id);
      const remove = button("×", () => removeTopic(entity), { "aria-label": `Remove ${name}` });
      return el("li", { class: "chip", title: clean(entity.id) }, words(name), remove);
    }),
  );
}

function removeTopic(entity) {
  setTopics(topics.filter((each) => each !== entity));
  byId("topic").focus();
}

/** Continue the conversation after an answer; an empty id begins a new one. */
export function followAnswer(id) {
  if (!id) thread = [];
  else if (!thread.includes(id)) thread = [id];
  byId("follow-box").hidden = !thread.length;
}

/** End the running question, if there is one, and empty the steps. */
export function leave() {
  running?.abort.abort();
  byId("progress").hidden = true;
  byId("steps").replaceChildren();
}

async function ask(done) {
  const question = byId("question").value.trim();
  if (!question) return;
  running?.abort.abort();
  const body = { question, topics: topics.map((each) => each.id), method: byId("method").value };
  if (models.length) body.model = byId("model").value;
  if (thread.length && byId("follow").checked) body.history = thread;
  const job = (running = { id: null, abort: new AbortController(), stopped: false, started: performance.now(), last: 0 });
  begin(job);
  let answer = null;
  try {
    for await (const { event, data } of events("/ask", body, job.abort.signal)) {
      if (event === "queued") queued(job, data);
      else if (event === "step") addStep(job, data);
      else if (event === "answer") answer = data;
      else if (event === "error") throw Object.assign(new Error(data.message), { hint: data.hint });
    }
    if (!answer && job === running) throw Object.assign(new Error("The connection ended before the answer."), { hint: "Ask again." });
  } catch (error) {
    if (job !== running) return;
    if (error.name !== "AbortError") byId("answer").replaceChildren(problem(error));
    else if (job.stopped) byId("answer").replaceChildren(note("Stopped. What was found until then is listed above."));
  }
  if (job !== running) return;
  end(job, answer);
  if (answer) {
    thread = body.history ? [...thread, answer.id] : [answer.id];
    done(answer);
    followAnswer(answer.id);
  }
}

function begin(job) {
  byId("answer").replaceChildren();
  byId("examples").hidden = true;
  byId("steps").replaceChildren();
  byId("progress").hidden = false;
  byId("progress").open = true;
  byId("progress").classList.add("working");
  byId("state").textContent = "Asked";
  byId("submit").hidden = true;
  byId("stop").hidden = false;
  byId("stop").disabled = false;
  byId("stop").focus({ preventScroll: true });
  say("Asked");
  const tick = () => (byId("elapsed").textContent = `${((performance.now() - job.started) / 1000).toFixed(1)} s`);
  tick();
  job.clock = setInterval(tick, 100);
}

function end(job, answer) {
  clearInterval(job.clock);
  running = null;
  byId("progress").classList.remove("working");
  const count = byId("steps").children.length;
  byId("state").textContent = `${job.stopped ? "Stopped after" : ""} ${counted(count, "step")}`.trim();
  byId("progress").open = job.stopped || !answer;
  byId("progress").hidden = !count;
  const focused = document.activeElement === byId("stop") || document.activeElement === document.body;
  byId("stop").hidden = true;
  byId("submit").hidden = false;
  if (focused) byId("question").focus({ preventScroll: true });
}

function queued(job, { id, position }) {
  job.id = id;
  if (!position) return;
  byId("state").textContent = `Waiting: ${counted(position, "question")} before yours`;
  say(byId("state").textContent);
}

function addStep(job, step) {
  if (!job.stopped) byId("state").textContent = "Working";
  const text = clean(step.words);
  if (!text) return;
  const time = el("time", {}, `${Number(step.at ?? 0).toFixed(2)} s`);
  const list = byId("steps");
  if (list.lastElementChild?.dataset.text === text) {
    list.lastElementChild.querySelector("time").replaceWith(time);
    return;
  }
  list.append(el("li", { "data-text": text }, words(text, "span", { class: "what" }), time));
  if (list.children.length > MAX_STEPS) list.firstElementChild.remove();
  list.scrollTop = list.scrollHeight;
  if (performance.now() - job.last > SAY_EVERY) {
    job.last = performance.now();
    say(text);
  }
}

async function stop() {
  const job = running;
  if (!job || job.stopped) return;
  job.stopped = true;
  byId("stop").disabled = true;
  byId("state").textContent = "Stopping";
  setTimeout(() => job.abort.abort(), job.id ? STOP_WAIT : 0);
  try {
    if (job.id) await post(`/ask/${encodeURIComponent(job.id)}/stop`);
  } catch {
    job.abort.abort();
  }
}

/** Get a kept answer. */
export const keptAnswer = (id) => get(`/answers/${encodeURIComponent(id)}`);
