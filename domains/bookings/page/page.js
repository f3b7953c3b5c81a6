/** The bookings of a customer within a period, live: a range between two times of booking. */

import { announce, day, make } from "/page/elements.js";
import { OrderedList, highestFirst } from "/page/ordered-list.js";
import { field } from "/page/sign-in.js";

const STORE = "bookings-by-customer";
const MOST = 200;
const HOUR_MS = 3_600_000;
const SPANS = { "Any time": null, "Last hour": HOUR_MS, "Last day": 24 * HOUR_MS, "Last week": 168 * HOUR_MS };

export const view = {
  label: "Bookings",
  isFor: (_, stores) => stores.has(STORE),
  open: (stage, customer) => new Bookings(stage, customer),
};

/** A form for the period, and a line for each booking in it, newest first. */
class Bookings {
  #stage;
  #customer;
  #lines = new Map(); // by booking id
  #list = make("ul", { className: "tickets" });
  #ordered = new OrderedList(this.#list, highestFirst);
  #note = make("p", { className: "notice", role: "note" });
  #from = field("Booked from", { name: "from", type: "datetime-local", step: 1 });
  #to = field("Until", { name: "to", type: "datetime-local", step: 1 });
  #spans = make("fieldset", { className: "chips" }, make("legend", { className: "unseen" }, "Time of booking"));
  #end = () => {};

  constructor(stage, customer = "") {
    this.#stage = stage;
    this.#customer = stage.consumer.staff ? customer : stage.consumer.id;
    const title = stage.consumer.staff ? "Bookings" : "My bookings";
    stage.show({ title }, this.#makeForm(), this.#note, this.#list);
    this.#watch();
  }

  #makeForm() {
    for (const [name, length] of Object.entries(SPANS)) this.#spans.append(this.#makeChoice(name, length));
    for (const { input } of [this.#from, this.#to])
      input.onchange = () => {
        for (const choice of this.#spans.querySelectorAll("input")) choice.checked = false;
        this.#watch();
      };
    const parts = [this.#spans, this.#from.row, this.#to.row];
    if (this.#stage.consumer.staff) parts.unshift(this.#makeCustomer());
    return make("form", { className: "filters", onsubmit: (event) => event.preventDefault() }, ...parts);
  }

  #makeCustomer() {
    const customer = field("Customer", { name: "customer", value: this.#customer, placeholder: "customer-0001" });
    customer.input.onchange = () => {
      this.#customer = customer.input.value.trim();
      this.#watch();
    };
    return customer.row;
  }

  #makeChoice(name, length) {
    const input = make("input", { type: "radio", name: "span", value: name, checked: length === null });
    input.onchange = () => {
      this.#from.input.value = length ? localTime(Date.now() - length) : "";
      this.#to.input.value = "";
      this.#watch();
    };
    return make("label", {}, input, make("span", {}, name));
  }

  #watch() {
    this.#end();
    [...this.#lines.keys()].forEach((bookingId) => this.#drop(bookingId));
    const [sortFrom, sortTo] = [this.#from, this.#to].map(({ input }) => sortOf(input.value));
    const isBackwards = sortFrom && sortTo && sortTo <= sortFrom;
    this.#to.input.setCustomValidity(isBackwards ? "This is before the beginning." : "");
    this.#end = () => {};
    if (!this.#customer) return this.#say("Whose bookings? Fill in a customer.");
    if (isBackwards) return this.#say("The time ends before it begins.");
    this.#say("");
    const range = { sort_from: sortFrom, sort_to: sortTo, reverse: true, limit: MOST };
    this.#end = this.#stage.watch({ store: STORE, group: this.#customer, ...range }, {
      show: (bookingId, told, isNew) => this.#show(bookingId, told, isNew),
      drop: (bookingId) => this.#drop(bookingId),
      began: () => this.#tell(),
    });
  }

  #show(bookingId, { sort, row }, isNew) {
    const line = this.#lines.get(bookingId) ?? make("li", { className: "ticket" });
    line.replaceChildren(...partsOf(bookingId, row));
    this.#lines.set(bookingId, line);
    this.#ordered.set(bookingId, line, sort);
    line.classList.toggle("changed", !isNew);
    this.#tell();
    if (!isNew) announce(`${bookingId} has changed`);
  }

  #drop(bookingId) {
    this.#ordered.delete(bookingId);
    this.#lines.delete(bookingId);
    this.#tell();
  }

  #tell() {
    if (this.#lines.size === 0) return this.#say("No bookings in this time. The first one appears here by itself.");
    this.#say(this.#lines.size < MOST ? "" : `These are the last ${MOST}: choose a shorter time for the others.`);
  }

  #say(text) {
    this.#note.textContent = text;
    this.#note.hidden = !text;
    this.#note.classList.toggle("short", this.#lines.size > 0);
  }
}

function partsOf(bookingId, { origin, destination, departs_at: departs, booked_at: booked }) {
  const arrow = make("span", { className: "arrow", role: "img", "aria-label": "to" }, "→");
  const fact = (name, value) => make("div", {}, make("dt", {}, name), make("dd", {}, value));
  const facts = [fact("Departs", timeOf(departs)), fact("Booked", timeOf(booked))];
  return [
    make("h2", {}, origin, " ", arrow, " ", destination),
    make("dl", { className: "times" }, ...facts),
    make("span", { className: "parcel" }, bookingId),
  ];
}

function timeOf(text) {
  return text ? make("time", { dateTime: text, title: text }, day(new Date(text))) : "–";
}

/** Returns the sort value of an input's local time; members are sorted by UTC, to the microsecond. */
function sortOf(value) {
  return value ? new Date(value).toISOString().replace("Z", "000Z") : "";
}

function localTime(milliseconds) {
  const moment = new Date(milliseconds);
  return new Date(moment - moment.getTimezoneOffset() * 60_000).toISOString().slice(0, 19);
}
