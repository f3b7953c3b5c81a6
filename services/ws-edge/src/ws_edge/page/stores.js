/** Any store, for staff: choose one, then a group or a key of it, and see its rows live. */

import { make } from "/page/elements.js";
import { Roster, groupsOf } from "/page/roster.js";
import { RowsTable } from "/page/rows-table.js";
import { field } from "/page/sign-in.js";

const MOST_ROWS = 100;
const MOST_LISTED = 1000;
const MOST_SHOWN = 60;
const LIST_MS = 5000;

export const view = {
  label: "Stores",
  isFor: (consumer, all) => consumer.staff && all.size > 0,
  open: (stage, store, group) => new AnyStore(stage, store, group),
};

/** The stores, the groups of the one that is chosen, and the rows of the group that is chosen. */
class AnyStore {
  #stage;
  #store;
  #group;
  #rows;
  #groups = make("ul", { className: "marks" });
  #note = make("p", { className: "facts" });

  constructor(stage, store = "", group = "") {
    this.#stage = stage;
    this.#store = stage.stores.get(store) ?? [...stage.stores.values()][0];
    this.#group = group;
    const { store: name, keeps, message, description } = this.#store;
    this.#rows = new RowsTable(name);
    const search = field(keeps === "members" ? "Group" : "Key", { name: "group", value: group, autocomplete: "off" });
    const form = make("form", { className: "filters" }, this.#makeStores(), search.row);
    form.onsubmit = (event) => {
      event.preventDefault();
      location.hash = addressOf(name, search.input.value.trim());
    };
    search.input.onchange = () => form.requestSubmit();
    const facts = [make("code", {}, message), ` · ${readersOf(this.#store)}`, description ? ` · ${description}` : ""];
    const about = make("p", { className: "about" }, ...facts);
    const rows = make("section", { className: "panel", "aria-label": "Rows" }, this.#rows.element);
    stage.show({ title: group || name }, form, about, this.#groups, this.#note, rows);
    this.#watch();
  }

  #makeStores() {
    const choice = make("select", { id: "store", name: "store" });
    for (const name of this.#stage.stores.keys()) {
      choice.append(make("option", { value: name, selected: name === this.#store.store }, name));
    }
    choice.onchange = () => (location.hash = addressOf(choice.value));
    return make("div", { className: "field" }, make("label", { for: choice.id }, "Store"), choice);
  }

  #watch() {
    const [{ store, keeps }, rows] = [this.#store, this.#rows];
    if (keeps === "members") {
      this.#stage.every(LIST_MS, () => this.#listGroups());
      if (this.#group) this.#stage.watch({ store, group: this.#group, limit: MOST_ROWS }, rows);
      else rows.say("Choose a group to see its rows live.");
    } else if (this.#group) {
      this.#stage.watch({ store, group: this.#group }, rows);
    } else {
      const listed = (count, isAll) => this.#say(isAll ? "" : `The first ${count} keys. Fill in another one to see it.`);
      new Roster(this.#stage, store, MOST_ROWS, Object.assign(rows, { listed }));
    }
  }

  async #listGroups() {
    const { groups, isAll } = await groupsOf(this.#stage, this.#store.store, MOST_LISTED);
    if (this.#stage.isOver) return;
    const shown = groups.slice(0, MOST_SHOWN);
    const known = [...this.#groups.children].map((each) => each.textContent);
    this.#say(isAll && shown.length === groups.length ? "" : "These are the first groups. Fill in another one to see it.");
    if (shown.join("\0") !== known.join("\0")) this.#groups.replaceChildren(...shown.map((group) => this.#link(group)));
  }

  #link(group) {
    const link = make("a", { href: `#${addressOf(this.#store.store, group)}` }, group);
    if (group === this.#group) link.setAttribute("aria-current", "true");
    return make("li", {}, link);
  }

  #say(text) {
    this.#note.textContent = text;
    this.#note.hidden = !text;
  }
}

function addressOf(...parts) {
  return ["stores", ...parts.filter(Boolean)].map(encodeURIComponent).join("/");
}

function readersOf({ readers, owner_field: field }) {
  if (readers === "owner") return `read by whom ${field} names, and by staff`;
  return `read by ${readers}`;
}
