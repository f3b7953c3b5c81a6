/** What a view works with while it is open: a place, what is watched for it, and calls. All of it ends with the view. */

import { call, held } from "/page/credentials.js";
import { make, span } from "/page/elements.js";

const INTERVAL_MS = 100;

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
   * Watches the members of a group: `show(name, told, isNew)` for each that is there or has changed, `drop(name)` for each
   * that is gone, `began(members)` at the start. Returns a function that ends it.
   */
  watchRange(store, group, options, handlers) {
    const names = new Set();
    const forget = (name) => names.delete(name) && handlers.drop(name);
    return this.#keep((shared) =>
      this.#live.watchRange(store, group, {
        ...shared,
        ...options,
        onStart: ({ recovered, members }) => {
          this.alert("");
          if (recovered) return;
          [...names].forEach(forget);
          handlers.began?.(members);
        },
        onChange: (told) => {
          const name = told.key.member;
          if (told.change === "left") return forget(name);
          const isNew = !names.has(name);
          names.add(name);
          this.#count(told, isNew);
          return handlers.show(name, told, isNew);
        },
      }),
    );
  }

  /** Watches one key of a store with one value per group, as `watchRange`. */
  watchKey(store, group, handlers) {
    let isNew = true;
    return this.#keep((shared) =>
      this.#live.subscribe(store, { group }, {
        ...shared,
        onStart: () => this.alert(""),
        onUpdate: (told) => {
          if (!told.row) return handlers.drop(group);
          this.#count(told, isNew);
          handlers.show(group, told, isNew);
          isNew = false;
        },
      }),
    );
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

  #keep(begin) {
    const subscription = begin({
      intervalMs: INTERVAL_MS,
      onDelay: () => this.alert("This cannot be looked up now. It appears as soon as it can be."),
      onError: (error) => this.alert(error.message),
    });
    const end = () => {
      this.#ends.delete(end);
      subscription.unsubscribe();
    };
    this.#ends.add(end);
    return end;
  }

  #count({ commitTime }, isNew) {
    if (isNew || this.isOver) return;
    this.#changed += 1;
    this.#changes.textContent = this.#changed.toLocaleString();
    if (commitTime) this.#took.textContent = span(Math.max(0, Date.now() - commitTime));
  }
}
