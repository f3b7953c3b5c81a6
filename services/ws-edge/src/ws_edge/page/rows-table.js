/** A table of rows of any message, or of JSON: a line for each row, and a column for each field that any of them has. */

import { flash, make } from "/page/elements.js";
import { OrderedList } from "/page/ordered-list.js";

const NUMBER = /^-?\d+(\.\d+)?$/;

export class RowsTable {
  #lines = new Map(); // by name
  #fields = [];
  #head = make("tr");
  #body = make("tbody");
  #ordered = new OrderedList(this.#body);
  #empty = make("p", { className: "notice" }, "No rows yet. The first one appears here by itself.");

  constructor(name) {
    const content = make("table", {}, make("thead", {}, this.#head), this.#body);
    const wide = make("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": name }, content);
    this.element = make("div", {}, this.#empty, wide);
  }

  /** Says why there are no rows. */
  say(text) {
    this.#empty.textContent = text;
  }

  /** Shows a row in the place of its sort value. */
  show(name, { sort, row }, isNew) {
    const line = this.#lines.get(name) ?? make("tr");
    this.#lines.set(name, line);
    this.#write(line, fieldsOf(row));
    this.#ordered.set(name, line, sort);
    if (!isNew) flash(line, "changed");
    this.#empty.hidden = true;
  }

  /** Takes a row away. */
  drop(name) {
    this.#ordered.delete(name);
    this.#lines.delete(name);
    this.#empty.hidden = this.#lines.size > 0;
  }

  #write(line, row) {
    const fresh = Object.keys(row).filter((field) => !this.#fields.includes(field));
    this.#fields.push(...fresh);
    this.#head.append(...fresh.map((field) => make("th", { scope: "col", className: classOf(textOf(row[field])) }, field)));
    line.replaceChildren(...this.#fields.map((field) => cellOf(row[field])));
    if (fresh.length === 0) return;
    for (const each of this.#lines.values()) while (each.childElementCount < this.#fields.length) each.append(make("td"));
  }
}

/** The fields of a row; a document that is no object is one. */
function fieldsOf(row) {
  return row !== null && typeof row === "object" && !Array.isArray(row) ? row : { value: row };
}

function cellOf(value) {
  const text = textOf(value);
  return make("td", { className: classOf(text), title: text }, make("span", { className: "clip" }, text));
}

/** A value for people: nothing for what is not set. */
function textOf(value = "") {
  return value !== null && typeof value === "object" ? JSON.stringify(value) : String(value);
}

function classOf(text) {
  return NUMBER.test(text) ? "number" : "";
}
