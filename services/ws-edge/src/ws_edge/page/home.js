/** The page at `/`: one view at a time of what the consumer may read; `#name/part` in the address says which. */

import { call, forget, held } from "/page/credentials.js";
import { make } from "/page/elements.js";
import { Renewal } from "/page/renewal.js";
import { showSession, signIn } from "/page/sign-in.js";
import { Stage } from "/page/stage.js";
import { linksOf, viewsFor } from "/page/views.js";
import { Statecast } from "/statecast.js";

const REFRESH_MS = 30_000; // of what there is to see: a pipeline may begin while the page is open

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
  #onMove = () => this.#open(true);

  constructor(live, consumer, stores) {
    this.#live = live;
    this.#consumer = consumer;
    this.#stores = stores;
    main.replaceChildren(this.#place);
    addEventListener("hashchange", this.#onMove);
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
    removeEventListener("hashchange", this.#onMove);
    this.#stage?.end();
    bar.hidden = true;
  }

  #open(moved) {
    const [name, ...parts] = partsOf(location.hash);
    const view = this.#showLinks(name);
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
    if (this.#stage) this.#showLinks(partsOf(location.hash)[0]);
    else this.#open(false);
  }

  /** Brings the navigation up to date; returns the view of that name, or else the first one. */
  #showLinks(name) {
    const views = viewsFor(this.#consumer, this.#stores);
    const view = views.find((each) => each.name === name) ?? views[0];
    bar.replaceChildren(...linksOf(views, view, this.#consumer));
    bar.hidden = bar.childElementCount < 2;
    return view;
  }
}

/** What the address names: a view, and what it shows. */
function partsOf(hash) {
  try {
    return hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return [];
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
