/**
 * Statecast's client for browsers: what keys hold, now and from now on, over one WebSocket. One file, no dependencies.
 *
 *     const live = new Statecast("wss://gateway/v1/stream?apikey=KEY");
 *     const order = live.subscribe("orders-by-key", { group: "order-000001" }, {
 *       onUpdate: ({ row, position, commitTime }) => …,     // row is null while the key has no value
 *       onError: (error) => …,                              // the subscription has ended; error.code says why
 *     });                                                   // order.unsubscribe() and live.close() end it
 *
 * It connects again by itself, with jittered and growing pauses, and resumes each subscription after the last position
 * that it was told: nothing newer is missed, nothing is told twice, whichever edge answers.
 */

const FIRST_PAUSE_MS = 250;
const LONGEST_PAUSE_MS = 10_000;
const RENEWED_AT = 0.8; // of the time that is left
const LONGEST_TIMER_MS = 2 ** 31 - 1;
const CLOSE_EXPIRED = 4401;
const FIRST_REFUSAL = 4000; // close codes from here on mean that another attempt would be closed as well

/** Why the server, or this client, refused something. `code` is a stable word, the message is for people. */
export class StatecastError extends Error {
  constructor(code, message) {
    super(message);
    this.code = code;
  }
}

/**
 * One live connection. Its events: `state` when `.state` has changed ("connecting", "open", "waiting" for the next
 * attempt, "closed"), and `error` with a StatecastError in `.detail` for what belongs to no subscription.
 */
export class Statecast extends EventTarget {
  #address;
  #ticket;
  #socket = null;
  #subscriptions = new Map(); // by name
  #requests = new Map(); // by the id of a frame: the subscription that asked
  #lastId = 0;
  #failures = 0;
  #reconnectAt = 0; // as the server asked for, before it goes away
  #pause = null;
  #renewal = null;

  /**
   * `address` is a URL, or a function, asynchronous or not, that returns one and is called for each attempt; a
   * StatecastError that it throws closes the client, other errors are tried again. `ticket` is a function that
   * returns a ticket from `POST /v1/tickets`: with it the access of the open socket is renewed before it expires.
   */
  constructor(address, { ticket = null } = {}) {
    super();
    this.#address = address;
    this.#ticket = ticket;
    this.state = "connecting";
    this.#connect();
  }

  /**
   * Watches one key: `{group}`, or `{group, sort, member}`. `after` resumes from a position. `intervalMs` is the
   * shortest time between two updates. `onStart` is told `{recovered}` whenever the subscription is in force anew,
   * `onDelay` that the first answer takes long.
   */
  subscribe(store, key, { intervalMs, after = null, ...handlers } = {}) {
    const ask = (position) => ({ subscribe: { store, key, after: position, interval_ms: intervalMs } });
    const cancel = { unsubscribe: { store, key } };
    return this.#watch(nameOfKey(store, key), { ...handlers, position: after, ask, cancel });
  }

  /**
   * Watches the members of a group, or those from `sortFrom` and before `sortTo`: the first `limit`, or with `reverse`
   * the last. `onChange` is told `{change, key, row, …}`: a member has "entered", "changed" or "left". After an
   * `onStart` with `recovered: false` all members enter again, and what was told before is to be dropped.
   */
  watchRange(store, group, { sortFrom, sortTo, limit, reverse, intervalMs, ...handlers } = {}) {
    const range = { store, group, sort_from: sortFrom, sort_to: sortTo, limit, reverse };
    const ask = (position) => ({ watch_range: { range, after: position, interval_ms: intervalMs } });
    const cancel = { unwatch_range: { range } };
    return this.#watch(nameOfRange(range), { ...handlers, position: null, ask, cancel });
  }

  /** Connects at once if the client waits for its next attempt: for example because the network is back. */
  reconnect() {
    if (this.state === "waiting") this.#connect();
  }

  /** Ends the connection and all subscriptions. */
  close() {
    this.#end(null);
  }

  async #connect() {
    clearTimeout(this.#pause);
    this.#become("connecting");
    let address;
    try {
      address = typeof this.#address === "function" ? await this.#address() : this.#address;
    } catch (error) {
      if (error instanceof StatecastError) this.#end(error);
      else this.#retry();
      return;
    }
    if (this.state === "closed") return;
    const socket = (this.#socket = new WebSocket(address));
    socket.onopen = () => {
      for (const subscription of this.#subscriptions.values()) this.#ask(subscription);
      this.#become("open");
      if (this.#ticket) this.#renew();
    };
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data));
    socket.onclose = (event) => this.#closed(event);
  }

  #closed({ code, reason }) {
    this.#socket = null;
    clearTimeout(this.#renewal);
    for (const request of this.#requests.values()) request.ended?.();
    this.#requests.clear();
    const renewable = code === CLOSE_EXPIRED && typeof this.#address === "function";
    if (code < FIRST_REFUSAL || renewable) this.#retry();
    else this.#end(new StatecastError(String(code), reason || "the server has closed the socket for good"));
  }

  #retry() {
    if (this.state === "closed") return;
    const ceiling = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
    const asked = Math.max(0, this.#reconnectAt - Date.now());
    this.#reconnectAt = 0;
    this.#pause = setTimeout(() => this.#connect(), asked + ceiling * (0.5 + Math.random() / 2));
    this.#become("waiting");
  }

  #end(error) {
    if (this.state === "closed") return;
    clearTimeout(this.#pause);
    clearTimeout(this.#renewal);
    this.#subscriptions.clear();
    this.#become("closed");
    this.#socket?.close();
    if (error) this.#fail(error);
  }

  #watch(name, subscription) {
    if (this.state === "closed") throw new StatecastError("closed", "this client is closed: make another one");
    if (this.#subscriptions.has(name)) throw new StatecastError("already_subscribed", `${name} is watched already`);
    subscription.name = name;
    subscription.unsubscribe = () => this.#unsubscribe(subscription);
    this.#subscriptions.set(name, subscription);
    if (this.state === "open") this.#ask(subscription);
    return subscription;
  }

  #ask(subscription) {
    subscription.request = this.#send(subscription.ask(subscription.position), subscription);
  }

  async #unsubscribe(subscription) {
    if (this.#subscriptions.get(subscription.name) !== subscription) return;
    this.#subscriptions.delete(subscription.name);
    this.#requests.delete(subscription.request);
    if (this.state === "open") await new Promise((ended) => this.#send(subscription.cancel, { ended }));
  }

  #send(request, asker) {
    const id = String(++this.#lastId);
    this.#requests.set(id, asker);
    this.#socket.send(JSON.stringify({ id, ...request }));
    return id;
  }

  #receive(frame) {
    this.#failures = 0;
    const [update, member] = [frame.changed ?? frame.removed, frame.range_changed];
    if (update) this.#tell(nameOfKey(update.store, update.key), update.position, "onUpdate", valueOf(update));
    else if (member) this.#tell(nameOfRange(member.range), member.through, "onChange", memberOf(member));
    else if (frame.reconnect) this.#reconnectAt = Date.now() + (frame.reconnect.delay_ms ?? 0);
    else this.#answer(frame, this.#requests.get(frame.id));
  }

  #tell(name, position, handler, told) {
    const subscription = this.#subscriptions.get(name);
    if (!subscription) return; // it was on its way when the subscription was ended
    subscription.position = position ?? subscription.position;
    subscription[handler]?.(told);
  }

  #answer(frame, asker) {
    if (frame.error) {
      this.#refused(frame, asker);
    } else if (frame.subscribed ?? frame.range_watched) {
      const { start, through, members = 0 } = frame.subscribed ?? frame.range_watched;
      if (asker) asker.position = through ?? asker.position;
      asker?.onStart?.({ recovered: start === "START_RECOVERED", members });
    } else {
      if (frame.authenticated) this.#renewBefore(frame.authenticated.expires_at);
      this.#requests.delete(frame.id);
      asker?.ended?.();
    }
  }

  #refused({ id, error: { code, message } }, asker) {
    const error = new StatecastError(code, message);
    if (asker?.name && code === "unavailable") return void asker.onDelay?.(error); // it stays, and its answer follows
    this.#requests.delete(id);
    if (!asker?.name) this.#fail(error);
    asker?.ended?.();
    this.#subscriptions.delete(asker?.name);
    asker?.onError?.(error);
  }

  async #renew() {
    try {
      const ticket = await this.#ticket();
      if (this.state === "open") this.#send({ auth_refresh: { ticket } }, {});
    } catch (error) {
      this.#fail(new StatecastError("not_renewed", `the access could not be renewed: ${error.message}`));
    }
  }

  #renewBefore(expiresAt) {
    clearTimeout(this.#renewal);
    if (!expiresAt) return;
    const pause = (new Date(expiresAt) - Date.now()) * RENEWED_AT;
    this.#renewal = setTimeout(() => this.#renew(), Math.min(pause, LONGEST_TIMER_MS));
  }

  #become(state) {
    this.state = state;
    this.dispatchEvent(new Event("state"));
  }

  #fail(error) {
    this.dispatchEvent(new CustomEvent("error", { detail: error }));
  }
}

function valueOf({ key, row = null, position, commit_time: committed, skipped = 0 }) {
  return { key, row, position, commitTime: committed ? new Date(committed) : null, skipped: Number(skipped) };
}

function memberOf({ change, ...value }) {
  return { change: change.replace("MEMBER_CHANGE_", "").toLowerCase(), ...valueOf(value) };
}

function nameOfKey(store, { group, sort = "", member = "" }) {
  return JSON.stringify([store, group, sort, member]);
}

function nameOfRange({ store, group, sort_from: from = "", sort_to: to = "", reverse = false }) {
  return JSON.stringify([store, group, from, to, reverse]); // the limit in force is the server's
}
