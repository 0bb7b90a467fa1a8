// A text field that completes names of entities: the combobox pattern of ARIA, with the keyboard or the mouse.

import { get } from "./api.js";
import { clean, el, say, shorter, words } from "./dom.js";

const PAUSE = 150;
const LIMIT = 8;

/** Complete names of entities in `input`, shown in `list`; call `choose` with the chosen entity. */
export function complete(input, list, choose) {
  let found = [];
  let active = -1;
  let timer = 0;
  let asked = null;

  function close() {
    clearTimeout(timer);
    timer = 0;
    asked?.abort();
    found = [];
    active = -1;
    list.hidden = true;
    list.replaceChildren();
    input.setAttribute("aria-expanded", "false");
    input.removeAttribute("aria-activedescendant");
  }

  function mark(index) {
    active = index;
    [...list.children].forEach((item, place) => item.setAttribute("aria-selected", String(place === index)));
    const item = list.children[index];
    if (item) {
      input.setAttribute("aria-activedescendant", item.id);
      item.scrollIntoView({ block: "nearest" });
    } else input.removeAttribute("aria-activedescendant");
  }

  function take(index) {
    const entity = found[index];
    if (!entity) return;
    close();
    input.value = "";
    choose(entity);
  }

  function option(entity, index) {
    const about = [clean(entity.id), ...(entity.types ?? []).map(clean), clean(entity.note)].filter(Boolean);
    return el(
      "li",
      {
        role: "option",
        id: `${list.id}-${index}`,
        "aria-selected": "false",
        onmousedown: (event) => event.preventDefault(),
        onclick: () => take(index),
      },
      words(shorter(entity.name || entity.id, 120), "b"),
      words(shorter(about.join(" · "), 200), "span", { class: "note" }),
    );
  }

  async function search() {
    clearTimeout(timer);
    timer = 0;
    const text = input.value.trim();
    asked?.abort();
    if (!text) return close();
    asked = new AbortController();
    try {
      const reply = await get("/search", { q: text, limit: LIMIT }, asked.signal);
      found = reply.entities ?? reply;
    } catch (error) {
      if (error.name === "AbortError") return undefined;
      list.replaceChildren(words(error.message, "li", { class: "none", role: "option", "aria-disabled": "true" }));
      list.hidden = false;
      return undefined;
    }
    if (document.activeElement !== input) return undefined;
    list.replaceChildren(...found.map(option));
    if (!found.length) list.append(el("li", { class: "none", role: "option", "aria-disabled": "true" }, "No entity found"));
    list.hidden = false;
    input.setAttribute("aria-expanded", "true");
    mark(-1);
    say(found.length ? `${found.length} found; choose with the arrow keys` : "No entity found");
    return undefined;
  }

  input.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(search, PAUSE);
  });
  input.addEventListener("blur", close);
  input.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    const count = found.length;
    if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      if (!count) search();
      else mark(event.key === "ArrowDown" ? (active + 1) % count : (active - 1 + count) % count);
    } else if (event.key === "Enter") {
      if (!count && !input.value.trim()) return;
      event.preventDefault();
      if (timer || !count) search().then(() => take(0));
      else take(Math.max(active, 0));
    } else if (event.key === "Escape") {
      if (list.hidden) input.value = "";
      close();
    }
  });
}
