/** What a view works with while it is open: a place, what is watched for it, and calls. All of it ends with the view. */

import { call, held } from "/page/credentials.js";
import { make, span } from "/page/elements.js";

const INTERVAL_MS = 100;
const UNSEEN = "This cannot be looked up now.";

/** The stage of one view. `consumer` is who looks, `stores` are those that they may read, by name. */
export class Stage {
  #place;
  #live;
  #ends = new Set();
  #alert = make("p", { className: "alert", role: "alert", hidden: true });
  #took = make("span", { className: "figure" }, "–");
  #changes = make("span", { className: "figure" }, "0");
  #changed = 0;

  constructor(place, live, consumer, stores) {
    Object.assign(this, { consumer, stores, isOver: false });
    this.#place = place;
    this.#live = live;
  }

  /** Shows a title, with `figures` by name beside those about changes, and the content. */
  show({ title, figures = {} }, ...content) {
    const all = { ...figures, "Changes seen": this.#changes, "Commit to screen": this.#took };
    const told = Object.entries(all).map(([name, value]) => make("div", {}, make("dt", {}, name), make("dd", {}, value)));
    const head = make("div", { className: "title" }, make("h1", {}, title), make("dl", { className: "figures" }, ...told));
    this.#place.replaceChildren(head, this.#alert, ...content);
  }

  /** Says what is wrong; an empty text when nothing is any more. */
  alert(text) {
    this.#alert.textContent = text;
    this.#alert.hidden = !text;
  }

  /** The answer of the edge to a call. Throws when it is refused. */
  ask(path) {
    return call(held(), path);
  }

  /**
   * Watches what a `Watch` of the contract says, for example `{ store, group, limit }`: `show(name, told, isNew)` for each row
   * that is there or has changed, `drop(name)` for each that is gone, `began(count)` at the start. A name is a row's key, or
   * the group in a store with one row per group; `told` is `{key, sort, row, commitTime}`. Returns a function that ends it.
   */
  watch(what, handlers) {
    const names = new Set();
    const watch = this.#live.watch({ interval_ms: INTERVAL_MS, delta: true, times: true, ...what }, {
      onRows: ({ rows, changes, began }) => {
        for (const change of changes) this.#tell(change, change.key || what.group, names, handlers);
        if (began) handlers.began?.(rows.size);
      },
      onStale: (seconds) => this.alert(seconds === null ? "" : `${UNSEEN} It may be out of date by ${span(seconds * 1000)}.`),
      onEnd: (error) => this.alert(error.message),
    });
    const end = () => {
      this.#ends.delete(end);
      watch.end();
    };
    this.#ends.add(end);
    return end;
  }

  /** Does something now, and again so many milliseconds after each time; what fails is said, and done again. */
  every(pauseMs, act) {
    const again = async () => {
      try {
        await act();
      } catch (error) {
        if (!this.isOver) this.alert(error.message);
      }
      if (!this.isOver) timer = setTimeout(again, pauseMs);
    };
    let timer = setTimeout(again);
    this.#ends.add(() => clearTimeout(timer));
  }

  /** Calls a function when the view ends. */
  atEnd(act) {
    this.#ends.add(act);
  }

  /** Ends everything. */
  end() {
    this.isOver = true;
    for (const end of this.#ends) end();
    this.#ends.clear();
  }

  #tell({ error, ...told }, name, names, handlers) {
    if (error) this.alert(error.message);
    if (told.row === null) return names.delete(name) && handlers.drop(name);
    const isNew = !names.has(name);
    const commitTime = told.commitTime && new Date(told.commitTime);
    names.add(name);
    this.#count({ commitTime }, isNew);
    return handlers.show(name, { ...told, commitTime }, isNew);
  }

  #count({ commitTime }, isNew) {
    if (isNew || this.isOver) return;
    this.#changed += 1;
    this.#changes.textContent = this.#changed.toLocaleString();
    if (commitTime) this.#took.textContent = span(Math.max(0, Date.now() - commitTime));
  }
}
