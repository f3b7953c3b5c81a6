/** One match and its markets. Each price has a fixed place: nothing moves when a price changes. */

import { day, flash, make, span } from "/page/elements.js";
import { OrderedList } from "/page/ordered-list.js";

const FOLDED = 3; // markets shown before the user asks for more
const FIRST = "match winner";
const SOON_MS = 3_600_000;
const MOVED_MS = 8000; // the time for which a price shows its direction

/** The card of a match. */
export class MatchCard {
  #lines = new Map(); // by market id
  #startsAt;
  #sport = make("span", { className: "sport" });
  #starts = make("time", { className: "age" });
  #title = make("h2");
  #list = make("ul", { className: "markets" });
  #ordered = new OrderedList(this.#list);
  #none = make("p", { className: "facts" }, "No markets yet.");
  #more = make("button", { type: "button", className: "more", "aria-expanded": "false" });

  constructor(matchId, row) {
    this.#list.id = `markets-${matchId}`;
    this.#title.id = `match-${matchId}`;
    this.#more.setAttribute("aria-controls", this.#list.id);
    this.#more.onclick = () => this.#fold(!this.element.classList.toggle("unfolded"));
    const parts = [this.#sport, this.#starts, this.#title, this.#none, this.#list, this.#more];
    this.element = make("li", { className: "match", "aria-labelledby": this.#title.id }, ...parts);
    this.update(row);
    this.#tell();
  }

  /** Shows the teams and the start. */
  update({ sport, home, away, starts_at: startsAt }) {
    this.#sport.textContent = sport;
    this.#title.replaceChildren(make("span", {}, home), make("span", { className: "against" }, "–"), make("span", {}, away));
    this.#startsAt = startsAt ? new Date(startsAt) : null;
    this.#starts.dateTime = startsAt ?? "";
    this.tick(Date.now());
  }

  /** Shows the current state of a market. */
  show(marketId, row) {
    const line = this.#lines.get(marketId) ?? new MarketLine();
    this.#lines.set(marketId, line);
    line.update(row);
    this.#ordered.set(marketId, line.element, row.name === FIRST ? "" : row.name);
    this.#tell();
  }

  /** Removes a market. */
  drop(marketId) {
    this.#ordered.delete(marketId);
    this.#lines.delete(marketId);
    this.#tell();
  }

  /** Shows a note when there are no markets. */
  began(markets) {
    this.#none.hidden = markets > 0;
  }

  /** Shows the time until the start, and ends the marks of prices that moved a while ago. */
  tick(now) {
    this.#starts.textContent = this.#startsAt ? startOf(this.#startsAt, now) : "";
    for (const line of this.#lines.values()) line.rest(now);
  }

  #tell() {
    const others = this.#lines.size - FOLDED;
    this.#none.hidden = this.#lines.size > 0;
    this.#more.classList.toggle("idle", others <= 0);
    this.#more.disabled = others <= 0;
    this.#fold(!this.element.classList.contains("unfolded"));
  }

  #fold(isFolded) {
    const others = Math.max(0, this.#lines.size - FOLDED);
    this.#more.setAttribute("aria-expanded", String(!isFolded));
    this.#more.textContent = isFolded ? `${others} more ${others === 1 ? "market" : "markets"}` : "Fewer markets";
  }
}

/** The line of a market: its name, and a price for each outcome. */
class MarketLine {
  #name = make("span", { className: "question" });
  #state = make("small", { className: "halt" });
  #prices = make("ul", { className: "prices" });
  #known = new Map(); // by outcome: { element, price, odds, movedAt }

  constructor() {
    this.element = make("li", { className: "market" }, make("p", {}, this.#name, this.#state), this.#prices);
  }

  update({ name, outcomes = [], suspended = false }) {
    this.#name.textContent = name;
    this.#state.textContent = suspended ? "Suspended" : "";
    this.element.classList.toggle("suspended", suspended);
    const left = new Set(this.#known.keys());
    for (const { name: outcome, odds_thousandths: odds } of outcomes) {
      left.delete(outcome);
      this.#show(outcome, odds, Date.now());
    }
    for (const outcome of left) this.#forget(outcome);
  }

  rest(now) {
    for (const each of this.#known.values()) if (now - each.movedAt > MOVED_MS) delete each.element.dataset.move;
  }

  #show(outcome, odds, now) {
    const known = this.#known.get(outcome) ?? this.#add(outcome);
    if (known.odds === odds) return;
    known.price.textContent = (odds / 1000).toFixed(2);
    if (known.odds !== undefined) {
      Object.assign(known, { movedAt: now });
      known.element.dataset.move = odds > known.odds ? "up" : "down";
      known.element.title = `${known.odds < odds ? "Up" : "Down"} from ${(known.odds / 1000).toFixed(2)}`;
      flash(known.element, "moved");
    }
    known.odds = odds;
  }

  #add(outcome) {
    const price = make("b");
    const element = make("li", { className: "price" }, make("span", { className: "outcome" }, outcome), price);
    this.#prices.append(element);
    const added = { element, price, movedAt: 0 };
    this.#known.set(outcome, added);
    return added;
  }

  #forget(outcome) {
    this.#known.get(outcome).element.remove();
    this.#known.delete(outcome);
  }
}

function startOf(startsAt, now) {
  const left = startsAt - now;
  if (left <= 0) return "starting";
  return left < SOON_MS ? `in ${span(Math.max(60_000, left))}` : day(startsAt, new Date(now));
}
