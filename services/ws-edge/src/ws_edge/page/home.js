/** The page at `/`: one view at a time of what the consumer may read; `#name/part` in the address says which. */

import { call, forget, held } from "/page/credentials.js";
import { dress, loadViews } from "/page/domain-pages.js";
import { make } from "/page/elements.js";
import { Renewal } from "/page/renewal.js";
import { showSession, signIn } from "/page/sign-in.js";
import { Stage } from "/page/stage.js";
import { Statecast } from "/statecast.js";

const REFRESH_MS = 30_000; // of all that there is to see: a domain may begin while the page is open

const main = document.getElementById("main");
const bar = document.getElementById("views");

/** What is open now, and the way from one view to the next. */
class Home {
  #live;
  #consumer;
  #stores = new Map(); // that the consumer may read, by name
  #views = [];
  #stage = null;
  #place = make("div");
  #unloaded = make("p", { className: "alert", role: "alert", hidden: true });
  #timer;
  #onMove = () => this.#open(true);

  constructor(live, consumer, sights) {
    this.#live = live;
    this.#consumer = consumer;
    main.replaceChildren(this.#unloaded, this.#place);
    this.#take(sights);
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

  async #open(moved) {
    const [name, ...parts] = partsOf(location.hash);
    const view = this.#showLinks(name);
    bar.querySelector("[aria-current]")?.scrollIntoView({ block: "nearest", inline: "nearest" });
    this.#stage?.end();
    this.#stage = null;
    if (!view) return this.#place.replaceChildren(make("p", { className: "notice" }, "There is nothing for you yet."));
    document.title = `${view.label} · Statecast`;
    const stage = (this.#stage = new Stage(this.#place, this.#live, this.#consumer, this.#stores));
    await dress(view);
    if (stage.isOver) return;
    view.open(stage, ...parts);
    if (moved) main.focus({ preventScroll: true });
  }

  #take({ stores, views, failed }) {
    this.#stores = stores;
    this.#views = views.filter((view) => view.isFor(this.#consumer, stores));
    this.#unloaded.textContent = [...failed.values()].join(" ");
    this.#unloaded.hidden = failed.size === 0;
  }

  async #refresh() {
    const before = this.#views.map(({ name }) => name).join();
    await sightsNow().then((sights) => this.#take(sights), (error) => this.alert(error.message));
    if (this.#views.map(({ name }) => name).join() === before) return;
    if (this.#stage) this.#showLinks(partsOf(location.hash)[0]);
    else this.#open(false);
  }

  /** Brings the navigation up to date; returns the view of that name, or else the first one. */
  #showLinks(name) {
    const view = this.#views.find((each) => each.name === name) ?? this.#views[0];
    const links = this.#views.map((each) => linkTo(`#${each.name}`, each.label, each === view));
    if (this.#consumer.staff) links.push(linkTo("/operator", "Operations", false));
    bar.replaceChildren(...links);
    bar.hidden = links.length < 2;
    return view;
  }
}

function linkTo(href, label, isCurrent) {
  const link = make("a", { href }, label);
  if (isCurrent) link.setAttribute("aria-current", "page");
  return link;
}

/** What the address names: a view, and what it shows. */
function partsOf(hash) {
  try {
    return hash.slice(1).split("/").map(decodeURIComponent);
  } catch {
    return [];
  }
}

/** All that there is to see now: the stores that the consumer may read, by name, and the views. */
async function sightsNow() {
  const [{ stores }, views] = await Promise.all([call(held(), "/v1/stores"), loadViews()]);
  return { stores: new Map(stores.map((each) => [each.store, each])), ...views };
}

async function begin(reason = "") {
  const { consumer } = await signIn(main, "See it live", reason);
  const showState = showSession(consumer);
  let sights;
  try {
    sights = await sightsNow();
  } catch (error) {
    forget();
    return begin(error.message);
  }
  const renewal = new Renewal(consumer, main, () => showState("expired"));
  const live = new Statecast("/v1/stream", {
    credentials: (need, until) => renewal.headers(need, until),
    onState: showState,
    onWarning: (warning) => console.warn(warning.message),
    onError: (error) => {
      if (live.state !== "closed") return home.alert(error.message);
      home.end();
      forget();
      return begin(error.message);
    },
  });
  const home = new Home(live, consumer, sights);
}

begin();
