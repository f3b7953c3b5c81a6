/** The page of operators: how fresh frames are, what the edges do, who serves the shards. */

import { draw } from "/page/chart.js";
import { call, forget, held } from "/page/credentials.js";
import { count, make, panel, span, table } from "/page/elements.js";
import { Edges, Freshness } from "/page/rates.js";
import { Renewal } from "/page/renewal.js";
import { showSession, signIn } from "/page/sign-in.js";
import { shape } from "/page/svg.js";
import { StatecastError } from "/statecast.js";

const EDGES_MS = 1000;
const SHARDS_MS = 3000;
const SLICE_MS = 5000;
const SLICES = 60;
const BEHIND_MS = 2000;
const COLUMNS = {
  Sockets: ({ report }) => count(report.sockets),
  Subscriptions: ({ report }) => count(report.subscriptions),
  Keys: ({ report }) => count(report.unique_keys),
  "Frames/s": ({ rates }) => rate(rates?.frames_sent),
  "Reads/s": ({ rates }) => rate(rates?.polled_keys),
  "Changes/s": ({ rates }) => rate(rates?.changed_keys),
  "Skipped/s": ({ rates }) => rate(rates?.skipped),
  Up: ({ report }) => span(report.uptime_s * 1000),
  State: ({ report }) => report.not_ready ?? "Ready",
};
const NUMBERS = Object.keys(COLUMNS).filter((name) => name !== "State");

const main = document.getElementById("main");

/** Everything that the page shows, and how it is brought up to date. */
class Operations {
  #edges = new Edges();
  #freshness = new Freshness(SLICE_MS, SLICES);
  #alert = make("p", { className: "alert", role: "alert", hidden: true });
  #figures = {};
  #chart = shape("svg", { class: "chart", role: "img" });
  #rows = make("tbody");
  #stores = make("tbody");
  #renewal;
  #showState;

  constructor(consumer, showState) {
    this.#renewal = new Renewal(consumer, main, () => showState("expired"));
    this.#showState = showState;
    const head = make("div", { className: "title" }, make("h1", {}, "Operations"), this.#makeFigures());
    main.replaceChildren(head, this.#alert, this.#makeChart(), this.#makeEdges(), this.#makeShards());
    this.#repeat(() => this.#readEdge(), EDGES_MS);
    this.#repeat(() => this.#readShards(), SHARDS_MS);
  }

  async #repeat(read, pauseMs) {
    try {
      await read();
      this.#alert.hidden = true;
      this.#showState("open");
    } catch (error) {
      this.#alert.textContent = error.message;
      this.#alert.hidden = false;
      this.#showState("waiting");
      if (error instanceof StatecastError) await this.#renewal.headers("expired").catch(leave);
    }
    setTimeout(() => this.#repeat(read, pauseMs), pauseMs);
  }

  async #readEdge() {
    const report = await call(held(), "/v1/edge");
    const now = Date.now();
    const added = this.#edges.take(report, now);
    if (added) this.#freshness.add(added, report.ages.bounds_s, now);
    this.#showEdges(this.#edges.list());
    this.#showFreshness(now);
  }

  async #readShards() {
    const { stores, shards } = await call(held(), "/v1/shards");
    this.#stores.replaceChildren(
      ...stores.map(({ store }) => {
        const own = shards.filter((shard) => shard.store === store);
        const name = make("th", { scope: "row" }, store);
        return make("tr", {}, name, make("td", {}, make("ul", { className: "shards" }, ...own.map(chip))));
      }),
    );
  }

  #showEdges(edges) {
    this.#rows.replaceChildren(
      ...edges.map((edge) => {
        const cells = Object.entries(COLUMNS).map(([name, tell]) =>
          make("td", { className: NUMBERS.includes(name) ? "number" : "" }, tell(edge)),
        );
        return make("tr", {}, make("th", { scope: "row" }, edge.report.instance), ...cells);
      }),
    );
    const sum = (tell) => edges.reduce((total, edge) => total + tell(edge), 0);
    this.#figures.Sockets.textContent = count(sum(({ report }) => report.sockets));
    this.#figures.Subscriptions.textContent = count(sum(({ report }) => report.subscriptions));
    this.#figures["Frames/s"].textContent = count(sum(({ rates }) => rates?.frames_sent ?? 0));
  }

  #showFreshness(now) {
    const points = this.#freshness.points(now);
    const newest = points.findLast((point) => point !== null);
    draw(this.#chart, points, (SLICE_MS * SLICES) / 60_000);
    const within = (seconds) => span(seconds * 1000);
    const told = newest ? `half within ${within(newest.middle)}, 99 % within ${within(newest.slowest)}` : "none";
    this.#chart.setAttribute("aria-label", `From commit to frame, over five minutes; the last: ${told}`);
    this.#figures["Commit to frame"].textContent = newest ? span(newest.middle * 1000) : "–";
  }

  #makeFigures() {
    const list = make("dl", { className: "figures" });
    for (const name of ["Sockets", "Subscriptions", "Frames/s", "Commit to frame"]) {
      this.#figures[name] = make("span", { className: "figure" }, "–");
      list.append(make("div", {}, make("dt", {}, name), make("dd", {}, this.#figures[name])));
    }
    return list;
  }

  #makeChart() {
    const kinds = [make("span", {}, "half are faster"), make("span", { className: "of-slowest" }, "99 % are faster")];
    const legend = make("p", { className: "legend", "aria-hidden": "true" }, ...kinds);
    const text = "From the commit at the source to the frame on the socket, over all edges.";
    return panel("Freshness", text, this.#chart, legend);
  }

  #makeEdges() {
    const text = "The gateway asks one edge after the other: all appear within seconds.";
    return panel("Edges", text, table("Edges", ["Edge", ...Object.keys(COLUMNS)], NUMBERS, this.#rows));
  }

  #makeShards() {
    const text = "Who owns each partition, how old its answers may be, and how many of its replicas serve.";
    return panel("Shards", text, table("Shards", ["Store", "Partitions"], [], this.#stores));
  }
}

function chip({ partition, replicas }) {
  const owner = replicas.find(({ rank }) => rank === 1);
  const serving = replicas.filter((replica) => replica.serving);
  const behind = owner === undefined || !owner.serving || Number(owner.lag_ms) > BEHIND_MS;
  const health = serving.length === 0 ? "down" : behind ? "behind" : "good";
  const title = replicas.map((each) => `${each.rank}. ${each.instance}: ${lagOf(each)}`).join("\n");
  const head = make("b", {}, `${partition} · ${owner?.instance ?? "no owner"}`);
  const told = `${owner ? lagOf(owner) : "not serving"} · ${serving.length} of ${replicas.length}`;
  return make("li", { className: "shard", "data-health": health, title }, head, told);
}

function lagOf({ serving, lag_ms: lag }) {
  return serving ? span(Number(lag)) : "not serving";
}

function rate(value) {
  return value === undefined ? "…" : count(value);
}

function leave() {
  forget();
  location.reload();
}

async function begin() {
  const { consumer } = await signIn(main, "Operations");
  const showState = showSession(consumer);
  if (consumer.staff) {
    new Operations(consumer, showState);
    return;
  }
  showState("closed");
  const elsewhere = make("a", { href: "/" }, "Go to what is yours");
  main.replaceChildren(make("p", { className: "notice" }, "This page is for staff. ", elsewhere));
}

begin();
