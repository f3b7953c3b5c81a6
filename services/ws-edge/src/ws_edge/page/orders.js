/** The page of a customer: their newest orders, each live. */

import { call, forget, socketAddress } from "/page/credentials.js";
import { announce, make, span } from "/page/elements.js";
import { OrderCard } from "/page/order-card.js";
import { showSession, signIn } from "/page/sign-in.js";
import { Statecast } from "/statecast.js";

const STORE = "orders-by-key";
const GROUPS = "/v1/stores/orders-by-customer/groups";
const MOST = 24;
const LISTING_MS = 5000;
const TICK_MS = 1000;
const INTERVAL_MS = 100;

const main = document.getElementById("main");

/** The orders of one customer: those that changed last, each with a subscription of its own. */
class Orders {
  #cards = new Map(); // by order id: { card, subscription }
  #list = make("ul", { className: "cards" });
  #empty = make("p", { className: "notice", hidden: true }, "No orders yet. The first one appears here by itself.");
  #alert = make("p", { className: "alert", role: "alert", hidden: true });
  #took = make("span", { className: "figure" }, "–");
  #changes = make("span", { className: "figure" }, "0");
  #changed = 0;
  #timer;
  #live;
  #credentials;
  #customer;

  constructor(credentials, customer, live) {
    this.#live = live;
    this.#credentials = credentials;
    this.#customer = customer;
    const told = [figure("Changes seen", this.#changes), figure("Commit to screen", this.#took)];
    const figures = make("dl", { className: "figures" }, ...told);
    const head = make("div", { className: "title" }, make("h1", {}, "My orders"), figures);
    main.replaceChildren(head, this.#alert, this.#empty, this.#list);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
    this.#listing();
  }

  /** Ends what goes on by itself. */
  stop() {
    clearInterval(this.#timer);
  }

  /** Says what is wrong; an empty text when nothing is any more. */
  alert(text) {
    this.#alert.textContent = text;
    this.#alert.hidden = !text;
  }

  async #listing() {
    try {
      const group = `${GROUPS}/${encodeURIComponent(this.#customer)}`;
      const { states } = await call(this.#credentials, `${group}?reverse=true&limit=${MOST}`);
      if (this.#live.state === "closed") return;
      this.#show(states.map(({ row }) => row).sort((one, other) => (one.placed_at < other.placed_at ? 1 : -1)));
      this.alert("");
    } catch (error) {
      this.alert(`New orders cannot be looked for: ${error.message}`);
    }
    if (this.#live.state !== "closed") setTimeout(() => this.#listing(), LISTING_MS);
  }

  #show(rows) {
    const wanted = new Set(rows.map((row) => row.order_id));
    for (const [orderId, { card, subscription }] of this.#cards) {
      if (wanted.has(orderId)) continue;
      subscription.unsubscribe();
      card.element.remove();
      this.#cards.delete(orderId);
    }
    for (const orderId of [...wanted].reverse()) if (!this.#cards.has(orderId)) this.#add(orderId);
    this.#empty.hidden = wanted.size > 0;
  }

  #add(orderId) {
    const card = new OrderCard(orderId);
    this.#list.prepend(card.element);
    const subscription = this.#live.subscribe(STORE, { group: orderId }, {
      intervalMs: INTERVAL_MS,
      onUpdate: (update) => this.#update(card, update),
      onError: (error) => card.refuse(error),
    });
    this.#cards.set(orderId, { card, subscription });
  }

  #update(card, update) {
    const known = card.word !== "";
    if (card.update(update)) announce(`${card.orderId} is now ${card.word}`);
    if (!known) return;
    this.#changed += 1;
    this.#changes.textContent = this.#changed;
    if (update.commitTime) this.#took.textContent = span(Math.max(0, Date.now() - update.commitTime));
  }

  #tick() {
    const now = Date.now();
    for (const { card } of this.#cards.values()) card.tick(now);
  }
}

function figure(name, value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value));
}

async function begin(reason = "") {
  const { credentials, consumer } = await signIn(main, "See your orders live", reason);
  if (!consumer.id || consumer.staff) {
    const elsewhere = make("a", { href: "/operator" }, "Go to operations");
    main.replaceChildren(make("p", { className: "notice" }, "You are staff and have no orders. ", elsewhere));
    showSession(consumer)("closed");
    return;
  }
  const showState = showSession(consumer);
  const live = new Statecast(() => socketAddress(credentials));
  const orders = new Orders(credentials, consumer.id, live);
  live.addEventListener("state", () => showState(live.state));
  live.addEventListener("error", ({ detail }) => {
    if (live.state !== "closed") return orders.alert(detail.message);
    orders.stop();
    forget();
    return begin(detail.message);
  });
  addEventListener("online", () => live.reconnect());
}

begin();
