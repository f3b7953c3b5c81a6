/** The sales of a shop in each of the last hours, as a moving chart and as a table. */

import { drawBars } from "./bars.js";
import { count, make, money, panel, table } from "/page/elements.js";
import { shape } from "/page/svg.js";

const HOUR_MS = 3_600_000;
const HOURS = 24;

export class HourlySales {
  #store;
  #hours = new Map(); // rows by start time
  #chart = shape("svg", { class: "chart bars", role: "img" });
  #body = make("tbody");
  #fresh = null; // the hour that has changed
  #due = null;

  constructor(store) {
    this.#store = store;
    const hours = table("Sales by the hour", ["Hour", "Invoices", "Amount"], ["Invoices", "Amount"], this.#body);
    const fold = make("details", { className: "fold" }, make("summary", {}, "As a table"), hours);
    this.element = panel("Sales by the hour", `What the shop has sold in the last ${HOURS} hours.`, this.#chart, fold);
  }

  /** Shows the sales of a shop. */
  watch(stage, shopId) {
    const watched = new ResizeObserver(() => this.#draw());
    watched.observe(this.#chart);
    stage.atEnd(() => watched.disconnect());
    stage.watch({ store: this.#store, group: shopId, reverse: true, limit: HOURS }, {
      show: (name, { row }, isNew) => this.#take(row, isNew),
      drop: (name) => this.#hours.delete(new Date(name) - HOUR_MS) && this.#drawSoon(),
    });
    stage.every(60_000, () => this.#draw());
  }

  #take(row, isNew) {
    const begins = Number(new Date(row.window_start));
    this.#hours.set(begins, row);
    if (!isNew) this.#fresh = begins;
    this.#drawSoon();
  }

  #drawSoon() {
    this.#due ??= setTimeout(() => this.#draw());
  }

  #draw() {
    this.#due = null;
    const open = Math.floor(Date.now() / HOUR_MS) * HOUR_MS;
    const begins = Array.from({ length: HOURS }, (_, index) => open - (HOURS - 1 - index) * HOUR_MS);
    const bars = begins.map((each) => this.#bar(each, open));
    drawBars(this.#chart, bars, (cents) => count(cents / 100));
    this.#fresh = null;
    const sold = bars.reduce((sum, { amount }) => sum + amount, 0);
    const now = bars.at(-1);
    this.#chart.setAttribute(
      "aria-label",
      `Sales of the last ${HOURS} hours: ${money(sold)} in all, ${money(now.amount)} in this hour`,
    );
    this.#body.replaceChildren(...bars.toReversed().map(lineOf));
  }

  #bar(begins, open) {
    const { amount_cents: cents = 0, invoices = 0 } = this.#hours.get(begins) ?? {};
    const label = new Date(begins).toLocaleTimeString(undefined, { hour: "numeric" });
    const title = `${label}: ${money(cents)}, ${invoices} ${Number(invoices) === 1 ? "invoice" : "invoices"}`;
    return { label, title, invoices, amount: Number(cents), isOpen: begins === open, isNew: begins === this.#fresh };
  }
}

function lineOf({ label, invoices, amount }) {
  const cell = (text) => make("td", { className: "number" }, text);
  return make("tr", {}, make("th", { scope: "row" }, label), cell(String(invoices)), cell(money(amount)));
}
