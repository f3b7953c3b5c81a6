/** The most recently changed orders of a customer, live, in one range. */

import { announce, make } from "/page/elements.js";
import { OrderedList, highestFirst } from "/page/ordered-list.js";
import { OrderCard } from "./order-card.js";

const STORE = "orders-by-customer";
const MOST = 24;
const TICK_MS = 1000;

export const view = {
  label: "Orders",
  rank: 0, // before those of other domains
  isFor: (consumer, stores) => !consumer.staff && stores.has(STORE),
  open: (stage) => new Orders(stage),
};

/** A card for each order of the range, the newest first. */
class Orders {
  #cards = new Map(); // by order id
  #list = make("ul", { className: "cards" });
  #ordered = new OrderedList(this.#list, highestFirst);
  #empty = make("p", { className: "notice", hidden: true }, "No orders yet. The first one appears here by itself.");

  constructor(stage) {
    stage.show({ title: "My orders" }, this.#empty, this.#list);
    stage.watch({ store: STORE, group: stage.consumer.id, reverse: true, limit: MOST }, {
      show: (orderId, told) => this.#show(orderId, told),
      drop: (orderId) => this.#drop(orderId),
      began: (members) => (this.#empty.hidden = members > 0),
    });
    stage.every(TICK_MS, () => this.#tick());
  }

  #show(orderId, told) {
    const card = this.#cards.get(orderId) ?? new OrderCard(orderId);
    this.#cards.set(orderId, card);
    this.#ordered.set(orderId, card.element, told.row.placed_at ?? "");
    this.#empty.hidden = true;
    if (card.update(told)) announce(`${card.orderId} is now ${card.word}`);
  }

  #drop(orderId) {
    this.#ordered.delete(orderId);
    this.#cards.delete(orderId);
    this.#empty.hidden = this.#cards.size > 0;
  }

  #tick() {
    const now = Date.now();
    for (const card of this.#cards.values()) card.tick(now);
  }
}
