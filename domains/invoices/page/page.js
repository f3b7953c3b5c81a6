/** One shop of the chain, for staff: its sales by the hour, its last invoices, and the totals of customers and cities. */

import { flash, make, money, panel, table } from "/page/elements.js";
import { OrderedList, highestFirst } from "/page/ordered-list.js";
import { Roster } from "/page/roster.js";
import { CitySales } from "./city-sales.js";
import { HourlySales } from "./hourly-sales.js";

const SHOPS = "stores-by-key";
const SALES = "hourly-sales-by-store";
const INVOICES = "invoices-by-store";
const REWARDS = "rewards-by-customer";
const CITIES = "sales-by-city";
const MOST_SHOPS = 200;
const MOST_INVOICES = 20;
const MOST_REWARDS = 300;
const MOST_CUSTOMERS = 10;
const ORDER_MS = 1500;
const WORDS = { DELIVERY_TYPE_HOME_DELIVERY: "Home delivery", DELIVERY_TYPE_TAKE_AWAY: "Taken along" };

export const view = {
  label: "Shops",
  isFor: (consumer, stores) => consumer.staff && [SALES, INVOICES].some((name) => stores.has(name)),
  open: (stage, shopId) => new Shop(stage, shopId),
};

/** The choice of a shop, and its details. */
class Shop {
  #stage;
  #shopId;
  #choice = make("select", { id: "shop", name: "shop" });
  #shops = new OrderedList(this.#choice);
  #options = new Map(); // by shop
  #parts; // the parts that show the chosen shop

  constructor(stage, shopId = "") {
    this.#stage = stage;
    this.#shopId = shopId;
    this.#choice.onchange = () => (location.hash = `#invoices/${encodeURIComponent(this.#choice.value)}`);
    const field = make("div", { className: "field" }, make("label", { for: this.#choice.id }, "Shop"), this.#choice);
    const [sales, invoices, rewards, cities] = [
      this.#isServed(SALES) && new HourlySales(SALES),
      this.#isServed(INVOICES) && new Invoices(),
      this.#isServed(REWARDS) && new Rewards(),
      this.#isServed(CITIES) && new CitySales(CITIES),
    ];
    this.#parts = [sales, invoices].filter(Boolean);
    const ofAllShops = [rewards, cities].filter(Boolean);
    const columns = [[invoices].filter(Boolean), ofAllShops]
      .filter((parts) => parts.length)
      .map((parts) => make("div", {}, ...parts.map(({ element }) => element)));
    const pair = make("div", { className: columns.length > 1 ? "pair" : "" }, ...columns);
    const form = make("form", { className: "filters" }, field);
    stage.show({ title: "Shops" }, form, ...(sales ? [sales.element] : []), pair);
    for (const part of ofAllShops) part.watch(stage);
    this.#listShops();
    if (shopId) this.#watch(shopId);
  }

  #isServed(store) {
    return this.#stage.stores.has(store);
  }

  #listShops() {
    if (!this.#isServed(SHOPS)) return this.#add(this.#shopId, this.#shopId);
    return new Roster(this.#stage, SHOPS, MOST_SHOPS, {
      show: (shopId, { row }) => this.#add(shopId, `${row.name} (${shopId})`),
      drop: (shopId) => this.#shops.delete(shopId) && this.#options.delete(shopId),
      listed: () => this.#options.size > 0 && !this.#shopId && this.#watch(this.#choice.options[0].value),
    });
  }

  #add(shopId, text) {
    const option = this.#options.get(shopId) ?? make("option", { value: shopId });
    this.#options.set(shopId, option);
    option.textContent = text;
    this.#shops.set(shopId, option, shopId);
    if (shopId === this.#shopId) option.selected = true;
  }

  #watch(shopId) {
    this.#shopId = shopId;
    for (const part of this.#parts) part.watch(this.#stage, shopId);
  }
}

/** The last invoices of a shop. */
class Invoices {
  #lines = new Map(); // by invoice number
  #body = make("tbody");
  #ordered = new OrderedList(this.#body, highestFirst);
  #none = make("p", { className: "notice", hidden: true }, "No invoices yet. The first one appears here by itself.");

  constructor() {
    const columns = ["Invoice", "Made", "Lines", "Total", "Goods"];
    const rows = table("Invoices", columns, ["Lines", "Total"], this.#body);
    this.element = panel("Invoices", "The last ones that the shop has made.", this.#none, rows);
  }

  watch(stage, shopId) {
    stage.watch({ store: INVOICES, group: shopId, reverse: true, limit: MOST_INVOICES }, {
      show: (number, told, isNew) => this.#show(number, told, isNew),
      drop: (number) => this.#drop(number),
      began: (members) => (this.#none.hidden = members > 0),
    });
  }

  #show(number, { sort, row }, isNew) {
    const line = this.#lines.get(number) ?? make("tr");
    this.#lines.set(number, line);
    const made = row.created_at ? new Date(row.created_at).toLocaleTimeString() : "";
    const cell = (text, className = "") => make("td", { className }, text);
    line.replaceChildren(
      make("th", { scope: "row" }, number),
      cell(made),
      cell(String(row.lines?.length ?? 0), "number"),
      cell(money(row.total_amount_cents ?? 0, row.currency), "number"),
      cell(WORDS[row.delivery_type] ?? "–"),
    );
    this.#ordered.set(number, line, sort);
    if (!isNew) flash(line, "changed");
    this.#none.hidden = true;
  }

  #drop(number) {
    this.#ordered.delete(number);
    this.#lines.delete(number);
    this.#none.hidden = this.#lines.size > 0;
  }
}

/** The customers of all shops with the most points. */
class Rewards {
  #rows = new Map(); // by card
  #body = make("tbody");
  #note = make("p", { className: "notice", hidden: true }, "No points yet. The first ones appear here by themselves.");

  constructor() {
    const rows = table("Rewards", ["Card", "Invoices", "Points"], ["Invoices", "Points"], this.#body);
    this.element = panel("Rewards", "Who has earned most points, in all shops.", this.#note, rows);
  }

  watch(stage) {
    new Roster(stage, REWARDS, MOST_REWARDS, {
      show: (card, { row }) => this.#rows.set(card, row),
      drop: (card) => this.#rows.delete(card),
      listed: (count) => (this.#note.hidden = count > 0),
    });
    stage.every(ORDER_MS, () => this.#order());
  }

  #order() {
    const most = [...this.#rows].sort(([, one], [, other]) => other.points - one.points).slice(0, MOST_CUSTOMERS);
    const cell = (value) => make("td", { className: "number" }, Number(value).toLocaleString());
    const line = ([card, { invoices, points }]) =>
      make("tr", {}, make("th", { scope: "row" }, `•••• ${card.slice(-4)}`), cell(invoices), cell(points));
    this.#body.replaceChildren(...most.map(line));
  }
}
