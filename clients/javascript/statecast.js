/**
 * The Statecast client: the state of keys, now and as it changes, over one WebSocket. One file.
 *
 *     import { Statecast } from "/statecast.js";
 *     const live = new Statecast("/v1/stream", { credentials: () => ({ apikey: "alice-demo-key" }) });
 *     const order = live.subscribe("orders-by-key", { group: "order-000001" }, {
 *       onUpdate: ({ row, position, commitTime }) => …,     // row is null while the key has no value
 *       onError: (error) => …,                              // the subscription has ended; error.code says why
 *     });                                                   // order.unsubscribe() and live.close() end it
 *
 * It connects again by itself, with jittered and growing pauses, and resumes each subscription after the last position
 * that it received: nothing newer is missed, no update of a key comes twice, at any edge. A handshake without an answer
 * for 10 seconds and a socket that is silent for 45 count as closed. After a close code, or the
 * status of a refused `POST …/tickets` (browsers do not show that of a handshake), it connects again, but:
 *     4401, 401         asks `credentials` once for newer ones, and resumes; when that does not help it ends
 *     4403, 4404, 1009  ends: access or channel ended, frame too large; so do other codes from 4000 on, and 400–499
 *     4408              connects again after 5 seconds; 429 and 503 after `Retry-After`; 1012 as `reconnect` says
 * When it ends, `onError` of all subscriptions and the event `error` get the reason; `live.reason` keeps it.
 */

const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS, CALL_TIMEOUT_MS] = [250, 10_000, 10_000];
const PAUSES_MS = { 4408: 5_000 }; // after closes that would come again at once
const [HANDSHAKE_MS, PROBE_MS, PROBES] = [10_000, 15_000, 2]; // so many probes without an answer: after 45 s of silence
const [RENEWED_AT, LONGEST_AHEAD_MS] = [0.8, 300_000]; // of the time that is left, but not more than so long ahead
const [SHORTEST_TIMER_MS, LONGEST_TIMER_MS] = [1000, 2 ** 31 - 1]; // whatever the clocks say
const [TOO_LARGE, EXPIRED] = [1009, [401, 4401]];
const [SUBPROTOCOL, TICKET] = ["statecast.push.v1+json", "statecast.ticket."]; // a ticket is not part of the address
const LARGEST_AFTER = 8192; // of the positions in a frame, in characters: the server refuses larger frames
const UNSHOWN = ["unreadable_row", "row_too_large"];
const PASSING = ["408", "429", "4408", "unreachable"];

/** Why the server, or this client, refused something. `code` is a stable word or number, the message is for people. */
export class StatecastError extends Error {
  constructor(code, message, pauseMs = 0) {
    super(message);
    Object.assign(this, { code: String(code), pauseMs }); // and how long to wait before another attempt
  }
}

/**
 * One live connection. Its events: `state` when `.state` has changed ("connecting", "open", "waiting" for the next
 * attempt, "closed"), and `error` with a StatecastError in `.detail` for what ends no subscription: `unreadable_row` and
 * `row_too_large` name a key whose row cannot be shown, while its subscription goes on.
 */
export class Statecast extends EventTarget {
  #address;
  #credentials;
  #socket = null;
  #subscriptions = new Map(); // by name
  #requests = new Map(); // by the id of a frame: the subscription that asked
  #lastId = 0;
  #failures = 0;
  #need = "connect"; // why credentials are asked for next
  #renewed = false; // whether the last ones were refused, and nothing has come of newer ones yet
  #reconnectAt = 0; // as the server asked for, before it goes away
  #probes = 0; // that have been sent since the server said anything
  #watchdog = null; // ends a handshake, then a connection, to which nobody answers
  #listening = new AbortController(); // to the page, which says when it is worth connecting at once
  #timer = null; // of the next attempt, or while the socket is open of the next renewal

  /**
   * `address` is that of the socket `/v1/stream`. `credentials` is a function, async or not, that returns HTTP headers for
   * a ticket to open the socket. It is called to "connect", when a fifth of the time is left until access ends, 5 minutes
   * at most ("expiring", and the Date of the end: the socket goes on without a gap), and after an expiry ("expired").
   * When it throws it is called again; a StatecastError ends the client if no socket is open.
   */
  constructor(address, { credentials = null } = {}) {
    super();
    this.#address = new URL(address, globalThis.location?.href).href.replace(/^http/, "ws");
    if (!/^wss?:/.test(this.#address)) throw new StatecastError("bad_address", `${address} is not that of a socket`);
    this.#credentials = credentials;
    this.reason = null; // why it is closed, or not connected now
    const [comeBack, { signal }] = [() => globalThis.document?.hidden || this.reconnect(), this.#listening];
    globalThis.addEventListener?.("online", comeBack, { signal });
    globalThis.document?.addEventListener("visibilitychange", comeBack, { signal });
    this.#connect();
  }

  /**
   * Watches one key: `{group}`, or `{group, sort, member}`. `after` begins after a position, also after that of an answer by
   * REST; `intervalMs` is the shortest time between two updates. `onStart` gets `{recovered}` when it starts or resumes;
   * `onDelay` is called when that takes long. With `repeat: true` `onUpdate` is called at each interval in which nothing has
   * changed as well, with the position that it had.
   */
  subscribe(store, key, options = {}) {
    return this.#watch(nameOfKey(store, key), "subscribe", { store, key }, options);
  }

  /**
   * Watches the members of a group, or those from `sortFrom` and before `sortTo`: the first `limit`, or with `reverse`
   * the last. `onChange` gets `{change: "entered" | "changed" | "left", key, row, …}`, and the last changes again
   * when the connection broke amid many. After an `onStart` with `recovered: false` drop all: members enter anew.
   * `after` may be the `through` of a page that REST has answered, which holds all rows of the same range.
   */
  watchRange(store, group, { sortFrom, sortTo, limit, reverse, ...options } = {}) {
    const range = { store, group, sort_from: sortFrom, sort_to: sortTo, limit, reverse };
    return this.#watch(nameOfRange(range), "watch_range", { range }, options);
  }

  /**
   * Watches a query: the `first` range, `{store, group, …}`, and for each of its rows the next of the `steps`,
   * `{store, group_field, …}`, as in statecast.push.v1.Query. `path` names the rows that lead to a range. `onRange` gets
   * `{path, recovered}` when one begins or resumes: without `recovered` drop all at the path and below, also when it has
   * `ended`. `onChange` gets `{path, change, key, row, …}` as that of a range: with a row that has "left" drop all below it.
   */
  watchQuery(name, first, steps, options = {}) {
    const subscription = this.#watch(nameOfQuery(name), "watch_query", { query: { name, first, steps } }, options);
    return Object.assign(subscription, { cancel: { unwatch_query: { name } } });
  }

  /** Connects at once if the client waits for its next attempt; so it does when the tab or the network comes back. */
  reconnect() {
    if (this.state === "waiting") this.#connect();
  }

  /** Ends the connection and all subscriptions. */
  close() {
    this.#end(null);
  }

  async #connect() {
    clearTimeout(this.#timer);
    this.#become("connecting");
    try {
      const address = new URL(this.#credentials ? "tickets/stream" : this.#address, this.#address);
      const offers = this.#credentials ? [SUBPROTOCOL, TICKET + (await this.#ticket(this.#need))] : [];
      if (this.state !== "closed") this.#listen((this.#socket = new WebSocket(address, offers)));
    } catch (error) {
      this.#over(error instanceof StatecastError ? error : new StatecastError("unreachable", error.message));
    }
  }

  async #ticket(need, until = null) {
    const headers = await this.#credentials(need, until);
    const options = { method: "POST", headers, cache: "no-store", signal: AbortSignal.timeout(CALL_TIMEOUT_MS) };
    const answer = await fetch(new URL("tickets", this.#address.replace(/^ws/, "http")), options);
    const { ticket, error, message } = await answer.json().catch(() => ({}));
    if (answer.ok) return ticket;
    const reason = error?.message ?? message ?? `the server answers ${answer.status}`;
    throw new StatecastError(answer.status, reason, 1000 * answer.headers.get("Retry-After") || 0);
  }

  #listen(socket) {
    const lost = (why) => this.#lost(socket, new StatecastError("unreachable", why));
    this.#watchdog = setTimeout(() => lost("the handshake was not answered"), HANDSHAKE_MS);
    socket.onopen = () => {
      this.#need = "connect";
      this.#probes = 0;
      clearTimeout(this.#watchdog);
      this.#watchdog = setInterval(() => (this.#probes++ < PROBES ? this.#probe() : lost("it is silent")), PROBE_MS);
      for (const subscription of this.#subscriptions.values()) this.#ask(subscription);
      this.#become("open", null);
    };
    socket.onmessage = (event) => this.#receive(JSON.parse(event.data));
    socket.onerror = () => setTimeout(() => lost("the socket has failed"), 0); // a close that follows says more
    socket.onclose = ({ code, reason }) => {
      this.#lost(socket, new StatecastError(code, reason || `closed with ${code}`, PAUSES_MS[code] ?? 0));
    };
  }

  #lost(socket, error) {
    if (socket !== this.#socket) return; // it was given up before
    this.#socket = null;
    clearTimeout(this.#timer);
    clearTimeout(this.#watchdog);
    socket.onopen = socket.onmessage = null;
    socket.close();
    for (const request of this.#requests.values()) request.ended?.();
    this.#requests.clear();
    this.#over(error);
  }

  #probe() { // browsers do not show the server's pings; a request that ends nothing is answered, too
    this.#send({ unwatch_query: { name: "statecast.js probe" } }, {});
  }

  #over(error) {
    const code = Number(error.code);
    const renewable = EXPIRED.includes(code) && this.#credentials && !this.#renewed;
    const passing = PASSING.includes(error.code) || (code >= 500 && code < 4000 && code !== TOO_LARGE);
    if (renewable) [this.#need, this.#renewed] = ["expired", true];
    if (this.state === "closed" || !(renewable || passing)) return this.#end(error);
    const ceiling = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
    const asked = Math.max(error.pauseMs, this.#reconnectAt - Date.now(), 0);
    this.#timer = setTimeout(() => this.#connect(), asked + ceiling * (0.5 + Math.random() / 2));
    this.#become("waiting", error);
  }

  #end(error) {
    if (this.state === "closed") return;
    clearTimeout(this.#timer);
    clearTimeout(this.#watchdog);
    this.#listening.abort();
    for (const { onError } of this.#subscriptions.values()) if (error) queueMicrotask(() => onError?.(error));
    this.#subscriptions.clear();
    this.#become("closed", error);
    this.#socket?.close();
    if (error) this.#fail(error);
  }

  #watch(name, verb, what, { intervalMs, repeat, after = null, ...handlers }) {
    if (this.state === "closed") throw this.reason ?? new StatecastError("closed", "this client is closed");
    if (this.#subscriptions.has(name)) throw new StatecastError("already_subscribed", `${name} is watched already`);
    const ask = (position) => ({ [verb]: { ...what, after: position, interval_ms: intervalMs, repeat } });
    const subscription = { ...handlers, name, ask, position: after, cancel: { [`un${verb}`]: what }, ranges: new Map() };
    subscription.unsubscribe = () => this.#unsubscribe(subscription);
    this.#subscriptions.set(name, subscription);
    if (this.state === "open") this.#ask(subscription);
    return subscription;
  }

  #ask(subscription) {
    subscription.inForce = false; // what comes until it is was on its way to an earlier one
    const position = subscription.ranges.size ? positionsIn(subscription.ranges) : subscription.position;
    subscription.request = this.#send(subscription.ask(position), subscription);
  }

  async #unsubscribe(subscription) {
    if (this.#subscriptions.get(subscription.name) !== subscription) return;
    this.#subscriptions.delete(subscription.name);
    this.#requests.delete(subscription.request);
    if (this.state !== "open") return;
    await new Promise((ended) => this.#send(subscription.cancel, { ended }));
  }

  #send(request, asker) {
    const id = String(++this.#lastId);
    this.#requests.set(id, asker);
    this.#socket.send(JSON.stringify({ id, ...request }));
    return id;
  }

  #receive(frame) {
    this.#failures = this.#probes = 0;
    if (frame.id || !frame.authenticated) this.#renewed = false;
    const update = frame.changed ?? frame.removed ?? frame.range_changed;
    if (frame.query) this.#updateQuery(frame, this.#subscriptions.get(nameOfQuery(frame.query.name)));
    else if (update) this.#update(update);
    else if (frame.reconnect) this.#reconnectAt = Date.now() + (frame.reconnect.delay_ms ?? 0);
    else this.#answer(frame, this.#requests.get(frame.id));
  }

  #update({ store, range, change, through, ...update }) {
    const subscription = this.#subscriptions.get(range ? nameOfRange(range) : nameOfKey(store, update.key));
    if (!subscription?.inForce) return;
    subscription.position = (range ? through : update.position) ?? subscription.position;
    if (!range) subscription.onUpdate?.(valueOf(update));
    else subscription.onChange?.({ change: wordOf(change), ...valueOf(update) });
  }

  #updateQuery({ id, query: { path = [] }, range_watched: began, range_changed: changed }, subscription) {
    if (id && subscription === this.#requests.get(id)) subscription.inForce = true;
    if (!subscription?.inForce) return;
    const { ranges, onRange, onChange } = subscription;
    if (changed) {
      const { change, through, range, ...update } = changed;
      const [word, value] = [wordOf(change), valueOf(update)];
      if (word === "left") dropBelow(ranges, [...path, value.key.member || value.key.group]);
      ranges.set(JSON.stringify(path), { path, group: range.group, through: through ?? throughOf(ranges, path) });
      return onChange?.({ path, change: word, ...value });
    }
    const recovered = began?.start === "START_RECOVERED";
    const through = began?.through ?? (recovered ? throughOf(ranges, path) : undefined);
    if (!recovered) dropBelow(ranges, path);
    if (began) ranges.set(JSON.stringify(path), { path, group: began.range.group, through });
    onRange?.({ path, recovered, ended: !began, members: began?.members ?? 0 });
  }

  #answer({ id, authenticated, error: refusal, ...frame }, asker) {
    const began = frame.subscribed ?? frame.range_watched;
    const error = refusal && new StatecastError(refusal.code, refusal.message);
    if (asker?.name && refusal?.code === "unavailable") return asker.onDelay?.(error); // its answer follows
    if (asker?.name && UNSHOWN.includes(refusal?.code)) return this.#fail(error); // and the next row follows
    const held = began?.start === "START_RECOVERED" ? asker?.position : null; // a snapshot begins anew
    if (began && asker) Object.assign(asker, { inForce: true, position: began.through ?? held });
    if (began) return asker?.onStart?.({ recovered: began.start === "START_RECOVERED", members: began.members ?? 0 });
    this.#requests.delete(id);
    if (authenticated) this.#renewBefore(authenticated.expires_at);
    if (error && !asker?.name) this.#fail(error);
    if (error) this.#subscriptions.delete(asker?.name);
    if (error) asker?.onError?.(error);
    asker?.ended?.();
  }

  #renewBefore(expiresAt) {
    clearTimeout(this.#timer);
    if (!expiresAt || !this.#credentials) return;
    const left = new Date(expiresAt) - Date.now();
    const pause = Math.max(SHORTEST_TIMER_MS, left * RENEWED_AT, left - LONGEST_AHEAD_MS);
    this.#timer = setTimeout(() => this.#renew(expiresAt, this.#socket), Math.min(pause, LONGEST_TIMER_MS));
  }

  async #renew(expiresAt, socket) {
    const again = () => this.#renewBefore(expiresAt); // until the server says that it is too late
    try {
      const ticket = await this.#ticket("expiring", new Date(expiresAt));
      if (socket === this.#socket) this.#send({ auth_refresh: { ticket } }, { onError: again });
    } catch ({ message }) {
      if (socket !== this.#socket) return;
      this.#fail(new StatecastError("not_renewed", `the access could not be renewed: ${message}`));
      again();
    }
  }

  #become(state, reason = this.reason) {
    Object.assign(this, { state, reason });
    this.dispatchEvent(new Event("state"));
  }

  #fail(error) {
    this.dispatchEvent(new CustomEvent("error", { detail: error }));
  }
}

const nameOfKey = (store, { group, sort = "", member = "" }) => JSON.stringify([store, group, sort, member]);
const nameOfQuery = (name) => JSON.stringify({ query: name });
const wordOf = (change) => change.replace("MEMBER_CHANGE_", "").toLowerCase();
const throughOf = (ranges, path) => ranges.get(JSON.stringify(path))?.through;

function dropBelow(ranges, path) {
  for (const [name, range] of ranges) if (path.every((row, depth) => row === range.path[depth])) ranges.delete(name);
}

/** What to resume from, the first ranges first, as much as a frame may hold: what is left out is told anew. */
function positionsIn(ranges) {
  const positions = [...ranges.values()].filter(({ through }) => through).sort((a, b) => a.path.length - b.path.length);
  let size = 0;
  return positions.filter((position) => (size += JSON.stringify(position).length) <= LARGEST_AFTER);
}

const nameOfRange = ({ store, group, sort_from: from = "", sort_to: to = "", reverse = false }) =>
  JSON.stringify([store, group, from, to, reverse]); // the limit in force is the server's
const valueOf = ({ key, row = null, position, commit_time: time, skipped = 0 }) =>
  ({ key, row, position, commitTime: time ? new Date(time) : null, skipped: Number(skipped) });
