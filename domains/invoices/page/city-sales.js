/** The sales of all shops in each city, highest first. */

import { flash, make, money, panel, table } from "/page/elements.js";
import { OrderedList, highestFirst } from "/page/ordered-list.js";
import { Roster } from "/page/roster.js";

const MOST_CITIES = 200;

export class CitySales {
  #store;
  #lines = new Map(); // by city
  #body = make("tbody");
  #ordered = new OrderedList(this.#body, highestFirst);
  #note = make("p", { className: "notice", hidden: true }, "No sales yet. The first ones appear here by themselves.");

  constructor(store) {
    this.#store = store;
    const rows = table("Cities", ["City", "Invoices", "Amount"], ["Invoices", "Amount"], this.#body);
    this.element = panel("Cities", "What the shops of each city have sold.", this.#note, rows);
  }

  watch(stage) {
    new Roster(stage, this.#store, MOST_CITIES, {
      show: (city, { row }, isNew) => this.#show(city, row, isNew),
      drop: (city) => this.#ordered.delete(city) && this.#lines.delete(city),
      listed: (count) => (this.#note.hidden = count > 0),
    });
  }

  #show(city, { invoices, amount_cents: cents }, isNew) {
    const line = this.#lines.get(city) ?? make("tr");
    this.#lines.set(city, line);
    const cell = (text) => make("td", { className: "number" }, text);
    line.replaceChildren(make("th", { scope: "row" }, city), cell(Number(invoices).toLocaleString()), cell(money(cents)));
    this.#ordered.set(city, line, Number(cents));
    if (!isNew) flash(line, "changed");
  }
}
