/** Asks for another token before the sign-in ends, or when it has ended, while the page stays as it is. */

import { call, headersOf, held, keep } from "/page/credentials.js";
import { announce, make, span } from "/page/elements.js";
import { field } from "/page/sign-in.js";
import { StatecastError } from "/statecast.js";

const TICK_MS = 1000;

/** The credentials of a page that goes on. Keys and passwords do not expire: when one is refused the page must end. */
export class Renewal {
  #consumer;
  #place;
  #onExpired;
  #banner = null;

  /** The banner stands first in `place`. `onExpired` is called when nothing is live until there is another token. */
  constructor(consumer, place, onExpired) {
    this.#consumer = consumer;
    this.#place = place;
    this.#onExpired = onExpired;
  }

  /** What a Statecast asks for its `credentials`: headers, as soon as the person has given them. */
  async headers(need, until) {
    if (need === "connect") return headersOf(held());
    if (held().kind !== "token") throw new StatecastError("refused", "These credentials are not accepted any more.");
    this.#banner ??= new Banner(this.#consumer, this.#place, () => (this.#banner = null));
    if (need === "expired") this.#onExpired();
    this.#banner.say(need === "expired" ? null : until);
    return headersOf(await this.#banner.renewed);
  }
}

class Banner {
  #text = make("p", { id: "renewal-text" });
  #alert = make("p", { className: "alert", role: "alert", hidden: true });
  #token = field("New token (JWT)", { name: "token", type: "password", autocomplete: "off", required: true });
  #button = make("button", { className: "primary" }, "Renew");
  #form = make("form", { className: "renewal", "aria-labelledby": "renewal-text" });
  #left = null; // where the person was before
  #timer = null;

  constructor(consumer, place, onEnd) {
    this.#form.append(this.#text, this.#token.row, this.#button, this.#alert);
    this.#form.addEventListener("focusin", ({ relatedTarget: from }) => {
      if (from && !this.#form.contains(from)) this.#left = from;
    });
    this.renewed = new Promise((done) => {
      this.#form.onsubmit = async (event) => {
        event.preventDefault();
        const credentials = await this.#accepted(consumer);
        if (!credentials) return;
        onEnd();
        this.#leave();
        done(credentials);
      };
    });
    place.prepend(this.#form);
  }

  /** Says until when the page stays live; null when it is not any more: only then focus is taken here. */
  say(until) {
    clearInterval(this.#timer);
    this.#form.dataset.need = until ? "expiring" : "expired";
    const tell = () => (this.#text.textContent = textOf(until));
    if (until) this.#timer = setInterval(tell, TICK_MS);
    announce(tell());
    if (!until) this.#token.input.focus();
  }

  async #accepted(consumer) {
    this.#button.disabled = this.#alert.hidden = true;
    const credentials = { kind: "token", value: this.#token.input.value.trim() };
    try {
      const { id, name } = await call(credentials, "/v1/consumer");
      if (id !== consumer.id || name !== consumer.name) throw new Error(`This is not a token of ${consumer.name}.`);
      keep(credentials);
      return credentials;
    } catch (error) {
      this.#alert.textContent = error.message;
      this.#alert.hidden = false;
      this.#token.input.focus();
      return null;
    } finally {
      this.#button.disabled = false;
    }
  }

  #leave() {
    clearInterval(this.#timer);
    const goesOn = this.#left?.isConnected ? this.#left : document.getElementById("main");
    if (this.#form.contains(document.activeElement)) goesOn.focus();
    this.#form.remove();
    announce("Your sign-in is renewed.");
  }
}

function textOf(until) {
  if (!until) return "Your sign-in has ended. Paste a new token to go on where you were.";
  const seconds = Math.max(0, Math.round((until - Date.now()) / 1000));
  return `Your sign-in ends in ${span(seconds * 1000)}. Paste a new token to stay live.`;
}
