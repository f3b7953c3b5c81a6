/** Elements of a list in an order that holds while they come, change and go. */

export class OrderedList {
  #list;
  #precedes;
  #entries = []; // { name, rank, element }

  /** `precedes(one, other)` tells whether an element of one rank comes before one of the other. */
  constructor(list, precedes = (one, other) => one < other) {
    this.#list = list;
    this.#precedes = precedes;
  }

  get size() {
    return this.#entries.length;
  }

  /** Adds an element, or gives it another rank. What stays where it is, is not touched. */
  set(name, element, rank) {
    const known = this.#entries.findIndex((each) => each.name === name);
    if (known >= 0) this.#entries.splice(known, 1);
    const after = this.#entries.findIndex((each) => this.#comesFirst({ name, rank }, each));
    const index = after < 0 ? this.#entries.length : after;
    this.#entries.splice(index, 0, { name, rank, element });
    if (index !== known) this.#list.insertBefore(element, this.#entries[index + 1]?.element ?? null);
  }

  /** Removes an element; returns whether it was there. */
  delete(name) {
    const known = this.#entries.findIndex((each) => each.name === name);
    if (known < 0) return false;
    this.#entries.splice(known, 1)[0].element.remove();
    return true;
  }

  #comesFirst(one, other) {
    if (one.rank === other.rank) return one.name < other.name;
    return this.#precedes(one.rank, other.rank);
  }
}

/** Descending order. */
export const highestFirst = (one, other) => one > other;
