/** The page of any store: `?store=S&group=G` shows a group's rows live, `?store=S&key=K` the one row of a key. */

import { forget } from "/page/credentials.js";
import { announce, make } from "/page/elements.js";
import { Renewal } from "/page/renewal.js";
import { showSession, signIn } from "/page/sign-in.js";
import { Statecast } from "/statecast.js";

const MOST = 100;
const INTERVAL_MS = 100;
const TYPE = "@type"; // which message a row is

const main = document.getElementById("main");
const wanted = new URLSearchParams(location.search);
const [store, group, key] = ["store", "group", "key"].map((name) => wanted.get(name) ?? "");

/** A table with a line for each row, and a column for each field that any of them has. */
class Rows {
  #lines = new Map(); // by sort and member
  #fields = [];
  #head = make("tr");
  #body = make("tbody");
  #empty = make("p", { className: "notice", hidden: true }, "No rows yet. The first one appears here by itself.");
  #alert = make("p", { className: "alert", role: "alert", hidden: true });

  constructor() {
    const title = make("div", { className: "title" }, make("h1", {}, store), make("p", {}, group || key));
    const table = make("table", {}, make("thead", {}, this.#head), this.#body);
    const wide = make("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": store }, table);
    main.replaceChildren(title, this.#alert, this.#empty, wide);
  }

  /** Says what is wrong; an empty text when nothing is any more. */
  alert(text) {
    this.#alert.textContent = text;
    this.#alert.hidden = !text;
  }

  /** What watches the group or the key. */
  watch(live) {
    const handlers = {
      intervalMs: INTERVAL_MS,
      onDelay: () => this.alert("The rows cannot be looked up now. They appear as soon as they can be."),
      onError: (error) => this.alert(error.message),
      onStart: ({ recovered }) => this.#begin(recovered),
    };
    if (key) live.subscribe(store, { group: key }, { ...handlers, onUpdate: (told) => this.#show(told, !told.row) });
    else
      live.watchRange(store, group, {
        ...handlers,
        limit: MOST,
        onChange: (told) => this.#show(told, told.change === "left"),
      });
  }

  #begin(recovered) {
    this.alert("");
    if (recovered) return;
    this.#lines.clear();
    this.#body.replaceChildren();
    this.#empty.hidden = false;
  }

  #show({ key: place = {}, row }, gone) {
    const name = [place.sort ?? "", place.member ?? ""].join("\0");
    const known = this.#lines.get(name);
    if (gone) {
      known?.remove();
      this.#lines.delete(name);
    } else {
      this.#write(known ?? this.#add(name), row);
    }
    this.#empty.hidden = this.#lines.size > 0;
    announce(`${place.member || place.group || key} ${gone ? "is gone" : known ? "has changed" : "is there"}`);
  }

  #add(name) {
    const line = make("tr");
    const after = [...this.#lines.keys()].filter((each) => each > name).sort()[0];
    this.#body.insertBefore(line, this.#lines.get(after) ?? null);
    this.#lines.set(name, line);
    return line;
  }

  #write(line, row) {
    const fresh = Object.keys(row).filter((field) => field !== TYPE && !this.#fields.includes(field));
    this.#fields.push(...fresh);
    this.#head.append(...fresh.map((field) => make("th", { scope: "col" }, field)));
    line.replaceChildren(...this.#fields.map((field) => make("td", {}, textOf(row[field]))));
    line.classList.remove("changed");
    requestAnimationFrame(() => line.classList.add("changed"));
  }
}

/** A value of a row for people: nothing for what is not set. */
function textOf(value = "") {
  return typeof value === "object" ? JSON.stringify(value) : String(value);
}

async function begin(reason = "") {
  if (!store || !group === !key) {
    const text = "This page shows what its address names: ?store=STORE&group=GROUP, or ?store=STORE&key=KEY.";
    return main.replaceChildren(make("p", { className: "notice" }, text));
  }
  const { consumer } = await signIn(main, `See ${store} live`, reason);
  const showState = showSession(consumer);
  const rows = new Rows();
  const renewal = new Renewal(consumer, main, () => showState("expired"));
  const live = new Statecast("/v1/stream", { credentials: (need, until) => renewal.headers(need, until) });
  rows.watch(live);
  live.addEventListener("state", () => showState(live.state));
  live.addEventListener("error", ({ detail }) => {
    if (live.state !== "closed") return rows.alert(detail.message);
    forget();
    return begin(detail.message);
  });
  addEventListener("online", () => live.reconnect());
}

begin();
