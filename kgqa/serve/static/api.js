// Talks to the service: JSON, and the event stream of a question.

/** An error that the service reported, or that it could not be reached. */
export class ServiceError extends Error {
  constructor(message, hint = "", status = 0) {
    super(message);
    this.hint = hint;
    this.status = status;
  }
}

const TOKEN = "kgqa-token";
let onLogin = () => {};

/** Call a function if the service asks for a token. */
export function onTokenNeeded(action) {
  onLogin = action;
}

/** Keep the token for this tab. */
export function setToken(token) {
  sessionStorage.setItem(TOKEN, token);
}

async function request(path, options = {}) {
  const headers = { Accept: "application/json", ...options.headers };
  const token = sessionStorage.getItem(TOKEN);
  if (token) headers.Authorization = `Bearer ${token}`;
  if (options.body !== undefined) headers["Content-Type"] = "application/json";
  let reply;
  try {
    reply = await fetch(path, { ...options, headers, credentials: "same-origin", cache: "no-store" });
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new ServiceError("The service cannot be reached.", "Check that kgqa serve is still running.");
  }
  if (reply.ok) return reply;
  if (reply.status === 401) onLogin();
  throw await failure(reply);
}

async function failure(reply) {
  let error = {};
  try {
    error = (await reply.json()).error ?? {};
  } catch {
    // not JSON
  }
  const wait = reply.headers.get("Retry-After");
  const hint = error.hint || (wait ? `Try again in ${wait} s.` : "");
  return new ServiceError(error.message || `The service answered with status ${reply.status}.`, hint, reply.status);
}

/** Get JSON; parameters that are empty are left out. */
export async function get(path, parameters = {}, signal = undefined) {
  const given = Object.entries(parameters).filter(([, value]) => value !== "" && value !== null && value !== undefined);
  const query = new URLSearchParams(given).toString();
  return (await request(query ? `${path}?${query}` : path, { signal })).json();
}

/** Post JSON and get JSON. */
export async function post(path, body = {}, signal = undefined) {
  return (await request(path, { method: "POST", body: JSON.stringify(body), signal })).json();
}

/** Post a question and yield its events as {event, data} until the stream ends. */
export async function* events(path, body, signal) {
  const options = { method: "POST", body: JSON.stringify(body), signal, headers: { Accept: "text/event-stream" } };
  const reply = await request(path, options);
  const reader = reply.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      const blocks = (rest + value).replaceAll("\r\n", "\n").split("\n\n");
      rest = blocks.pop();
      for (const block of blocks) {
        const event = parseEvent(block);
        if (event) yield event;
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

function parseEvent(block) {
  let event = "message";
  const data = [];
  for (const line of block.split("\n")) {
    if (line.startsWith("event:")) event = line.slice(6).trim();
    else if (line.startsWith("data:")) data.push(line.slice(5).replace(/^ /u, ""));
  }
  return data.length ? { event, data: JSON.parse(data.join("\n")) } : null;
}
