/** One order: its status, progress and freshness. */

import { age, flash, make, money } from "/page/elements.js";

const STATIONS = ["PLACED", "PAID", "PACKED", "SHIPPED", "DELIVERED"];

/** A card that shows the updates of its order. */
export class OrderCard {
  #age = make("time", { className: "age" });
  #status = make("strong", { className: "status" }, "…");
  #track = make("ol", { className: "track", "aria-hidden": "true" });
  #facts = make("p", { className: "facts" });
  #changedAt = null;

  constructor(orderId) {
    this.orderId = orderId;
    this.word = "";
    const head = make("h2", {}, orderId);
    this.element = make("li", { className: "card" }, head, this.#age, this.#status, this.#track, this.#facts);
    this.#track.append(...STATIONS.map(() => make("li")));
  }

  /** Shows the order's current state. Returns whether its status has changed. */
  update({ row, commitTime }) {
    const before = this.word;
    const status = row.status.replace("ORDER_STATUS_", "");
    this.word = status.charAt(0) + status.slice(1).toLowerCase();
    this.#status.textContent = this.word;
    this.element.dataset.status = status.toLowerCase();
    const reached = STATIONS.indexOf(status);
    [...this.#track.children].forEach((station, index) => station.classList.toggle("reached", index <= reached));
    this.#facts.replaceChildren(...facts(row));
    this.#changedAt = commitTime;
    this.#age.dateTime = commitTime?.toISOString() ?? "";
    this.#age.title = commitTime?.toLocaleString() ?? "";
    this.tick(Date.now());
    if (before) flash(this.element, "changed");
    return Boolean(before) && before !== this.word;
  }

  /** Shows the time since the last change. */
  tick(now) {
    this.#age.textContent = this.#changedAt ? age(this.#changedAt, now) : "";
    this.element.classList.toggle("fresh", this.#changedAt !== null && now - this.#changedAt < 5000);
  }
}

function facts({ items = [], total_cents: total = 0, currency, tracking_number: parcel, estimated_delivery: day }) {
  const pieces = items.reduce((sum, { quantity = 0 }) => sum + quantity, 0);
  const told = [`${pieces} ${pieces === 1 ? "item" : "items"}`, money(total, currency)];
  if (day) told.push(`due ${new Date(day).toLocaleDateString(undefined, { day: "numeric", month: "short" })}`);
  const parts = [told.join(" · ")];
  if (parcel) parts.push(make("span", { className: "parcel", title: "Tracking number" }, parcel));
  return parts;
}
