/** The holders of shares, for staff: every client with positions and shares, live, and one client in detail. */

import { announce, flash, make, panel, table } from "/page/elements.js";
import { OrderedList, highestFirst } from "/page/ordered-list.js";
import { Roster } from "/page/roster.js";

const STORE = "us-share-holders";
const MOST = 500;
const MOST_CHANGES = 12;
const ORDER_MS = 1500; // rows move no more often, so people can follow one
const NOTHING = { positions: 0, shares: 0 };
const OWN_FIELDS = ["client", "positions", "shares"];

export const view = {
  label: "Holders",
  isFor: (consumer, stores) => consumer.staff && stores.has(STORE),
  open: (stage, client) => new Holders(stage, client),
};

/** A table of clients, most shares first, next to the chosen client. */
class Holders {
  #rows = new Map(); // by client: { row, line, cells }
  #body = make("tbody");
  #ordered = new OrderedList(this.#body, highestFirst);
  #moved = new Set();
  #clients = make("span", { className: "figure" }, "–");
  #shares = make("span", { className: "figure" }, "–");
  #note = make("p", { className: "notice", hidden: true }, "No client holds such shares. The first one appears here by itself.");
  #detail = null;
  #client;

  constructor(stage, client) {
    const figures = { Clients: this.#clients, Shares: this.#shares };
    const list = table("Clients", ["Client", "Positions", "Shares", ""], ["Positions", "Shares"], this.#body);
    const parts = [make("section", { className: "panel" }, this.#note, list)];
    if (client) parts.push((this.#detail = new Detail(client)).element);
    const pair = make("div", { className: client ? "pair" : "" }, ...parts);
    stage.show({ title: "Holders of US shares", figures }, pair);
    this.#client = client;
    new Roster(stage, STORE, MOST, {
      show: (name, told, isNew) => this.#show(name, told, isNew),
      drop: (name) => this.#drop(name),
      listed: (count) => (this.#note.hidden = count > 0),
    });
    stage.every(ORDER_MS, () => this.#order());
  }

  #show(name, { row, commitTime }, isNew) {
    const entry = this.#rows.get(name) ?? this.#add(name);
    if (name === this.#client) this.#detail.update(row, commitTime);
    entry.row = row;
    entry.positions.textContent = number(row.positions);
    entry.shares.textContent = number(row.shares);
    if (isNew) this.#ordered.set(name, entry.line, Number(row.shares));
    else flash(entry.line, "changed");
    this.#moved.add(name);
  }

  #add(name) {
    const link = make("a", { href: `#positions/${encodeURIComponent(name)}` }, name);
    if (name === this.#client) link.setAttribute("aria-current", "true");
    const [positions, shares] = [make("td", { className: "number" }), make("td", { className: "number" })];
    const share = make("span", { className: "share" });
    const cells = [make("th", { scope: "row" }, link), positions, shares, make("td", { className: "bar-cell" }, share)];
    const entry = { line: make("tr", {}, ...cells), positions, shares, share, row: NOTHING };
    this.#rows.set(name, entry);
    return entry;
  }

  #drop(name) {
    if (name === this.#client) this.#detail.update(null);
    this.#ordered.delete(name);
    this.#rows.delete(name);
    this.#moved.delete(name);
    announce(`${name} holds no such shares any more`);
  }

  #order() {
    for (const name of this.#moved) {
      const { line, row } = this.#rows.get(name);
      this.#ordered.set(name, line, Number(row.shares));
    }
    this.#moved.clear();
    const all = [...this.#rows.values()].map(({ row }) => Number(row.shares));
    const highest = Math.max(1, ...all);
    for (const { row, share } of this.#rows.values()) share.style.width = `${(100 * row.shares) / highest}%`;
    this.#clients.textContent = number(all.length);
    this.#shares.textContent = number(all.reduce((sum, each) => sum + each, 0));
  }
}

/** One client: the current holdings, other fields of the row, and the changes since it was opened. */
class Detail {
  #before = null;
  #facts = make("dl", { className: "figures" });
  #more = make("div");
  #changes = make("ol", { className: "changes" });
  #none = make("p", { className: "facts" }, "No change since you look.");

  constructor(client) {
    const close = make("a", { className: "close", href: "#positions", "aria-label": "Close" }, "×");
    const changes = [make("h3", {}, "Changes"), this.#none, this.#changes];
    this.element = panel(client, "", close, this.#facts, this.#more, ...changes);
    this.element.classList.add("detail");
  }

  /** Shows the row; null when the client no longer holds anything. */
  update(row, commitTime = null) {
    const now = row ?? NOTHING;
    const facts = { Positions: number(now.positions), Shares: number(now.shares) };
    const fact = ([name, value]) => {
      const text = make("span", { className: "figure" }, value);
      return make("div", {}, make("dt", {}, name), make("dd", {}, text));
    };
    this.#facts.replaceChildren(...Object.entries(facts).map(fact));
    this.#more.replaceChildren(...Object.entries(now).filter(([name]) => !OWN_FIELDS.includes(name)).flatMap(fieldOf));
    if (this.#before) this.#note(this.#before, now, commitTime ?? new Date());
    this.#before = now;
  }

  #note(before, now, at) {
    const parts = ["shares", "positions"].map((name) => [name, Number(now[name]) - Number(before[name])]);
    const moved = parts.filter(([, by]) => by).map(([name, by]) => `${by > 0 ? "+" : "−"}${number(Math.abs(by))} ${name}`);
    if (moved.length === 0) return;
    this.#none.hidden = true;
    const time = make("time", { dateTime: at.toISOString() }, at.toLocaleTimeString());
    const change = make("li", { className: parts[0][1] < 0 ? "down" : "up" }, time, moved.join(", "));
    this.#changes.prepend(change);
    while (this.#changes.childElementCount > MOST_CHANGES) this.#changes.lastChild.remove();
  }
}

/** Shows a field that this page does not know by name: a list as marks, anything else as text. */
function fieldOf([name, value]) {
  const title = make("h3", {}, name.replaceAll("_", " "));
  if (!Array.isArray(value)) return [title, make("p", {}, String(value))];
  return [title, make("ul", { className: "marks" }, ...value.map((each) => make("li", {}, String(each))))];
}

function number(value) {
  return Number(value).toLocaleString();
}
