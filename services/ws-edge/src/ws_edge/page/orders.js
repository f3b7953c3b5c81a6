/** The page of a customer: the orders that changed last, live, in one range. */

import { forget } from "/page/credentials.js";
import { announce, make, span } from "/page/elements.js";
import { OrderCard } from "/page/order-card.js";
import { Renewal } from "/page/renewal.js";
import { showSession, signIn } from "/page/sign-in.js";
import { Statecast } from "/statecast.js";

const STORE = "orders-by-customer";
const MOST = 24;
const TICK_MS = 1000;
const INTERVAL_MS = 100;

const main = document.getElementById("main");

/** A card for each order of the range, the newest first. */
class Orders {
  #cards = new Map(); // by order id
  #list = make("ul", { className: "cards" });
  #empty = make("p", { className: "notice", hidden: true }, "No orders yet. The first one appears here by itself.");
  #alert = make("p", { className: "alert", role: "alert", hidden: true });
  #took = make("span", { className: "figure" }, "–");
  #changes = make("span", { className: "figure" }, "0");
  #changed = 0;
  #timer;

  constructor() {
    const told = [figure("Changes seen", this.#changes), figure("Commit to screen", this.#took)];
    const figures = make("dl", { className: "figures" }, ...told);
    const head = make("div", { className: "title" }, make("h1", {}, "My orders"), figures);
    main.replaceChildren(head, this.#alert, this.#empty, this.#list);
    this.#timer = setInterval(() => this.#tick(), TICK_MS);
  }

  /** Watches the orders of a customer. */
  watch(live, customer) {
    live.watchRange(STORE, customer, {
      reverse: true,
      limit: MOST,
      intervalMs: INTERVAL_MS,
      onStart: (start) => this.#begin(start),
      onChange: (told) => (told.change === "left" ? this.#remove(told.key.member) : this.#update(told)),
      onDelay: () => this.alert("Your orders cannot be looked up now. They appear as soon as they can be."),
      onError: (error) => this.alert(error.message),
    });
  }

  /** Says what is wrong; an empty text when nothing is any more. */
  alert(text) {
    this.#alert.textContent = text;
    this.#alert.hidden = !text;
  }

  /** Stops the timer. */
  stop() {
    clearInterval(this.#timer);
  }

  #begin({ recovered, members }) {
    this.alert("");
    if (recovered) return;
    this.#cards.clear();
    this.#list.replaceChildren();
    this.#empty.hidden = members > 0;
  }

  #update(told) {
    const known = this.#cards.get(told.key.member);
    const card = known ?? this.#add(told.key.member, told.row.placed_at);
    if (card.update(told)) announce(`${card.orderId} is now ${card.word}`);
    if (!known) return;
    this.#changed += 1;
    this.#changes.textContent = this.#changed;
    if (told.commitTime) this.#took.textContent = span(Math.max(0, Date.now() - told.commitTime));
  }

  #add(orderId, placedAt = "") {
    const card = new OrderCard(orderId, placedAt);
    const older = [...this.#cards.values()].filter((each) => each.placedAt < placedAt);
    const next = older.reduce((newest, each) => (newest && newest.placedAt > each.placedAt ? newest : each), null);
    this.#list.insertBefore(card.element, next?.element ?? null);
    this.#cards.set(orderId, card);
    this.#empty.hidden = true;
    return card;
  }

  #remove(orderId) {
    this.#cards.get(orderId)?.element.remove();
    this.#cards.delete(orderId);
    this.#empty.hidden = this.#cards.size > 0;
  }

  #tick() {
    const now = Date.now();
    for (const card of this.#cards.values()) card.tick(now);
  }
}

function figure(name, value) {
  return make("div", {}, make("dt", {}, name), make("dd", {}, value));
}

async function begin(reason = "") {
  const { consumer } = await signIn(main, "See your orders live", reason);
  if (!consumer.id || consumer.staff) {
    const elsewhere = make("a", { href: "/operator" }, "Go to operations");
    main.replaceChildren(make("p", { className: "notice" }, "You are staff and have no orders. ", elsewhere));
    showSession(consumer)("closed");
    return;
  }
  const showState = showSession(consumer);
  const orders = new Orders();
  const renewal = new Renewal(consumer, main, () => showState("expired"));
  const live = new Statecast("/v1/stream", { credentials: (need, until) => renewal.headers(need, until) });
  orders.watch(live, consumer.id);
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
