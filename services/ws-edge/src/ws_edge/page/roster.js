/** All rows of a store with one value per group: its keys are listed from time to time, and each of them is watched. */

const LIST_MS = 5000;
const PAGE = 500;

/** Keeps `show(group, told, isNew)` and `drop(group)` told of the rows; `listed(count, isAll)` of each listing. */
export class Roster {
  #stage;
  #store;
  #most;
  #handlers;
  #watched = new Map(); // by group: what ends its watch

  /** Watches `most` rows, the first in the order of their groups. */
  constructor(stage, store, most, handlers) {
    this.#stage = stage;
    this.#store = store;
    this.#most = most;
    this.#handlers = handlers;
    stage.every(LIST_MS, () => this.#list());
  }

  async #list() {
    const { groups, isAll } = await groupsOf(this.#stage, this.#store, this.#most);
    if (this.#stage.isOver) return;
    for (const group of groups) if (!this.#watched.has(group)) this.#watch(group);
    this.#handlers.listed?.(groups.length, isAll);
  }

  #watch(group) {
    const forget = () => {
      this.#watched.get(group)();
      this.#watched.delete(group);
      this.#handlers.drop(group);
    };
    this.#watched.set(group, this.#stage.watch({ store: this.#store, group }, { show: (...told) => this.#handlers.show(...told), drop: forget }));
  }
}

/** The first groups of a store, `most` rows' at the most, and whether these are all that it has. */
export async function groupsOf(stage, store, most) {
  const groups = new Set();
  let [token, read] = ["", 0];
  do {
    const page = new URLSearchParams({ limit: Math.min(PAGE, most - read), page_token: token });
    const { rows = [], next_page_token: next } = await stage.ask(`/v1/stores/${encodeURIComponent(store)}/rows?${page}`);
    for (const { group } of rows) groups.add(group);
    [token, read] = [next, read + rows.length];
  } while (token && read < most);
  return { groups: [...groups], isAll: !token };
}
