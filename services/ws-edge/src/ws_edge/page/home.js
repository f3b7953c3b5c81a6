/** The page at `/`: one view at a time of what the consumer may read; `#name/part` in the address says which. */

import { call, forget, held } from "/page/credentials.js";
import { make } from "/page/elements.js";
import { Renewal } from "/page/renewal.js";
import { showSession, signIn } from "/page/sign-in.js";
import { Stage } from "/page/stage.js";
import { linksOf, viewsFor } from "/page/views.js";
import { Statecast } from "/statecast.js";

const REFRESH_MS = 15_000; // of what there is to see: a pipeline may begin while the page is open

const main = document.getElementById("main");
const bar = document.getElementById("views");

/** What is open now, and the way from one view to the next. */
class Home {
  #live;
  #consumer;
  #stores;
  #stage = null;
  #place = make("div");
  #timer;

  constructor(live, consumer, stores) {
    Object.assign(this, { open: () => this.#open(true) });
    this.#live = live;
    this.#consumer = consumer;
    this.#stores = stores;
    main.replaceChildren(this.#place);
    addEventListener("hashchange", this.open);
    this.#timer = setInterval(() => this.#refresh(), REFRESH_MS);
    this.#open(false);
  }

  /** Says what is wrong with the connection. */
  alert(text) {
    this.#stage?.alert(text);
  }

  /** Ends what is open. */
  end() {
    clearInterval(this.#timer);
    removeEventListener("hashchange", this.open);
    this.#stage?.end();
    bar.hidden = true;
  }

  #open(moved) {
    const [name, ...parts] = location.hash.slice(1).split("/").map(decodeURIComponent);
    const views = viewsFor(this.#consumer, this.#stores);
    const view = views.find((each) => each.name === name) ?? views[0];
    bar.replaceChildren(...linksOf(views, view, this.#consumer));
    bar.hidden = bar.childElementCount < 2;
    bar.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.#stage?.end();
    this.#stage = null;
    if (!view) return this.#place.replaceChildren(make("p", { className: "notice" }, "There is nothing for you yet."));
    document.title = `${view.label} · Statecast`;
    this.#stage = new Stage(this.#place, this.#live, this.#consumer, this.#stores);
    view.open(this.#stage, ...parts);
    if (moved) main.focus({ preventScroll: true });
  }

  async #refresh() {
    const stores = await storesNow().catch(() => this.#stores);
    const isSame = [...stores.keys()].join() === [...this.#stores.keys()].join();
    this.#stores = stores;
    if (isSame) return;
    const views = viewsFor(this.#consumer, stores);
    const name = location.hash.slice(1).split("/")[0];
    if (!this.#stage) return this.#open(false);
    bar.replaceChildren(...linksOf(views, views.find((each) => each.name === name) ?? views[0], this.#consumer));
    bar.hidden = bar.childElementCount < 2;
  }
}

/** The stores that the consumer may read, by name. */
async function storesNow() {
  const { stores } = await call(held(), "/v1/stores");
  return new Map(stores.map((each) => [each.store, each]));
}

async function begin(reason = "") {
  const { consumer } = await signIn(main, "See it live", reason);
  const showState = showSession(consumer);
  let stores;
  try {
    stores = await storesNow();
  } catch (error) {
    forget();
    return begin(error.message);
  }
  const renewal = new Renewal(consumer, main, () => showState("expired"));
  const live = new Statecast("/v1/stream", { credentials: (need, until) => renewal.headers(need, until) });
  const home = new Home(live, consumer, stores);
  live.addEventListener("state", () => showState(live.state));
  live.addEventListener("error", ({ detail }) => {
    if (live.state !== "closed") return home.alert(detail.message);
    home.end();
    forget();
    return begin(detail.message);
  });
  addEventListener("online", () => live.reconnect());
}

begin();
