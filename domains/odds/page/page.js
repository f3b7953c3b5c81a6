/** The odds board: the matches that are about to start, their markets, and prices that move. */

import { announce, make } from "/page/elements.js";
import { OrderedList } from "/page/ordered-list.js";
import { groupsOf } from "/page/roster.js";
import { MatchCard } from "./match-card.js";

const MATCHES = "matches-about-to-start";
const MARKETS = "odds-by-match";
const MOST_KNOWN = 200;
const MOST_SHOWN = 12; // one socket watches 20 ranges: these, and the groups of matches
const MOST_GROUPS = 8;
const MOST_MARKETS = 50;
const LIST_MS = 10_000; // new groups, one per status, are rare
const TICK_MS = 1000;
const EVERY = "All sports";

export const view = {
  label: "Odds",
  isFor: (_, stores) => stores.has(MATCHES) && stores.has(MARKETS),
  open: (stage) => new Board(stage),
};

/** A card for each of the next matches, earliest first. */
class Board {
  #stage;
  #matches = new Map(); // rows by match id
  #shown = new Map(); // by match id: { card, end }
  #groups = new Set();
  #sport = EVERY;
  #sports = new Set();
  #list = make("ul", { className: "board" });
  #ordered = new OrderedList(this.#list);
  #choices = make("fieldset", { className: "chips", hidden: true }, make("legend", { className: "unseen" }, "Sport"));
  #empty = make("p", { className: "notice", hidden: true }, "No match is about to start. The next one appears here by itself.");
  #count = make("span", { className: "figure" }, "0");
  #due = null;

  constructor(stage) {
    this.#stage = stage;
    stage.show({ title: "Live odds", figures: { Matches: this.#count } }, this.#choices, this.#empty, this.#list);
    this.#choices.append(this.#makeChoice(EVERY));
    stage.every(LIST_MS, () => this.#listGroups());
    stage.every(TICK_MS, () => this.#tick());
  }

  async #listGroups() {
    const { groups } = await groupsOf(this.#stage, MATCHES, MOST_KNOWN);
    this.#empty.hidden = this.#matches.size + groups.length > 0;
    for (const group of groups) if (!this.#stage.isOver && this.#groups.size < MOST_GROUPS) this.#watchGroup(group);
  }

  #watchGroup(group) {
    if (this.#groups.has(group)) return;
    this.#groups.add(group);
    this.#stage.watch({ store: MATCHES, group, limit: MOST_KNOWN }, {
      show: (matchId, { row }) => this.#take(matchId, row),
      drop: (matchId) => this.#lose(matchId),
    });
  }

  #take(matchId, row) {
    this.#matches.set(matchId, row);
    this.#shown.get(matchId)?.card.update(row);
    if (!this.#sports.has(row.sport)) this.#addSport(row.sport);
    this.#arrangeSoon();
  }

  #lose(matchId) {
    const row = this.#matches.get(matchId);
    this.#matches.delete(matchId);
    if (this.#shown.has(matchId)) announce(`${row.home} – ${row.away} has left the board`);
    this.#arrangeSoon();
  }

  #addSport(sport) {
    this.#sports.add(sport);
    this.#choices.append(this.#makeChoice(sport));
    this.#choices.hidden = this.#sports.size < 2;
  }

  #makeChoice(sport) {
    const input = make("input", { type: "radio", name: "sport", value: sport, checked: sport === this.#sport });
    input.onchange = () => {
      this.#sport = sport;
      this.#arrange();
    };
    return make("label", {}, input, make("span", {}, sport));
  }

  /** Runs once for all matches that come together. */
  #arrangeSoon() {
    this.#due ??= setTimeout(() => this.#arrange());
  }

  #arrange() {
    this.#due = null;
    if (this.#stage.isOver) return;
    const rank = ([matchId, row]) => `${row.starts_at ?? ""} ${matchId}`;
    const wanted = [...this.#matches]
      .filter(([, row]) => this.#sport === EVERY || row.sport === this.#sport)
      .sort((one, other) => (rank(one) < rank(other) ? -1 : 1));
    const next = new Map(wanted.slice(0, MOST_SHOWN));
    for (const matchId of [...this.#shown.keys()]) if (!next.has(matchId)) this.#hide(matchId);
    for (const [matchId, row] of next) {
      if (!this.#shown.has(matchId)) this.#open(matchId, row);
      this.#ordered.set(matchId, this.#shown.get(matchId).card.element, rank([matchId, row]));
    }
    this.#count.textContent = wanted.length > next.size ? `${next.size} of ${wanted.length}` : wanted.length;
    this.#empty.hidden = next.size > 0;
  }

  #open(matchId, row) {
    const card = new MatchCard(matchId, row);
    const end = this.#stage.watch({ store: MARKETS, group: matchId, limit: MOST_MARKETS }, {
      show: (marketId, { row: market }) => card.show(marketId, market),
      drop: (marketId) => card.drop(marketId),
      began: (markets) => card.began(markets),
    });
    this.#shown.set(matchId, { card, end });
  }

  #hide(matchId) {
    this.#shown.get(matchId).end();
    this.#shown.delete(matchId);
    this.#ordered.delete(matchId);
  }

  #tick() {
    const now = Date.now();
    for (const { card } of this.#shown.values()) card.tick(now);
  }
}
