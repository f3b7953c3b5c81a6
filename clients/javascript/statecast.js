/**
 * The Statecast client: rows of any store, live, over one WebSocket, in browsers, Node and React Native. One file.
 *
 *     import { Statecast } from "statecast";
 *     const live = new Statecast("wss://GATEWAY/v1/stream", { credentials: () => ({ apikey: "alice-demo-key" }) });
 *     const board = live.watch({ store: "odds-by-match", group: "match-000123", delta: true }, {
 *       onRows: ({ changes }) => …,          // board.rows and board.token are current here
 *       onEnd: (error) => …,                 // the watch has ended; error.code is the reason
 *     });                                    // board.end() and live.close() end it
 *
 * It connects again by itself, with jittered and growing pauses, and resumes each watch by its token. A handshake
 * without an answer for 10 seconds counts as closed, as does a socket silent for 45. The close code, or the status of a
 * refused `POST …/tickets` (browsers hide a handshake's), decides: 4401 and 401 ask `credentials` once for newer ones;
 * 4403, 1009 and 400–499 but 408 and 429 end the client; all others connect again, 429 and 503 after `Retry-After`, 1012
 * after the edge's delay.
 */

const [FIRST_PAUSE_MS, LONGEST_PAUSE_MS, CALL_TIMEOUT_MS] = [250, 10_000, 10_000];
const [HANDSHAKE_MS, SILENCE_CHECK_MS, CHECKS, PING_MS] = [10_000, 5_000, 9, 5_000]; // 9 checks: 40 to 45 s of silence
const [RENEWED_AT, LONGEST_AHEAD_MS, SHORTEST_TIMER_MS, LONGEST_TIMER_MS] = [0.8, 300_000, 1000, 2 ** 31 - 1];
const [TOO_LARGE, REVOKED, EXPIRED, PASSING] = ["1009", "4403", ["401", "4401"], ["408", "429"]];
const now = () => globalThis.performance?.now() ?? Date.now(); // in ms: the time of day may jump
const [SUBPROTOCOL, TICKET] = ["statecast.push.v2+json", "statecast.ticket."]; // a ticket is not part of the address
const [LARGEST_FRAME, ENVELOPE] = [65_536, '{"watch":[]}'.length]; // of ours, in bytes, until the edge sends another limit

/** A refusal by the edge or this client. `code` is a stable word or number; the message is for people. */
export class StatecastError extends Error {
  constructor(code, message, retryMs = null) {
    super(message);
    Object.assign(this, { code: String(code), retryMs }); // null: retrying does not help
  }
}

/**
 * The rows of a watch, place by place: the watch itself, and with steps or a channel a place for each row that leads
 * on. It handles frames, not sockets. Rows take effect when the token of their place comes; both can be stored, to
 * resume after a restart.
 */
export class Places {
  #places = new Map(); // by path, as JSON
  /** Whether the watch itself resumed from its token when it last began; null before. */
  resumed = null;

  /**
   * `saved` is the result of `save` for the same watch, or a page by REST of the same range; null, as from empty
   * storage, when there is none. Throws a StatecastError for anything else.
   */
  constructor(saved) {
    try {
      for (const { path, token, rows } of Array.isArray(saved) ? saved : pageOf(saved)) {
        if (!Array.isArray(path) || typeof token !== "string") throw new TypeError("a place lacks its path or token");
        this.#places.set(JSON.stringify(path), newPlace(path, token, new Map(rows.map((each) => [each.key, each]))));
      }
    } catch ({ message }) {
      throw new StatecastError("malformed_saved", `\`saved\` is neither save() of a watch nor a page with rows and token: ${message}`);
    }
  }

  /** The rows of a place by their keys, each `{key, sort, row, commitTime}`. */
  rows(path = []) {
    return this.#at(path)?.rows ?? new Map();
  }

  /** The last token of a place; an empty string when there is none. */
  token(path = []) {
    return this.#at(path)?.token ?? "";
  }

  /** Every place: `[{path, rows, token}]`, the shortest paths first. */
  list() {
    return [...this.#places.values()].sort((one, other) => one.path.length - other.path.length);
  }

  /** Returns all rows with their tokens, for JSON. */
  save() {
    const whole = this.list().filter(({ token }) => token);
    return whole.map(({ path, token, rows }) => ({ path, token, rows: [...rows.values()] }));
  }

  /** Returns the fields of a `watch` that resume it: `token`, and as much of `below` as fits into the given bytes. */
  resumption(room = LARGEST_FRAME) {
    const [below, token] = [[], this.token()];
    let size = sizeOf({ token, below });
    for (const { path, token: own } of token ? this.list() : []) {
      if (path.length && own && (size += sizeOf({ path, token: own }) + 1) <= room) below.push({ path, token: own });
    }
    return { ...(token && { token }), ...(below.length && { below }) };
  }

  /** Forgets rows that wait for a token, as their socket has ended. */
  cut() {
    for (const place of this.#places.values()) Object.assign(place, { waiting: [], anew: false });
  }

  /** Makes the watch begin again: the rows stay until others replace them. */
  forgetTokens() {
    this.cut();
    for (const place of this.#places.values()) place.token = "";
  }

  /** Takes a newer token of a quiet place. */
  bookmark({ path = [], token }) {
    const place = this.#at(path);
    if (place?.token && !place.anew && !place.waiting.length) place.token = token;
  }

  /**
   * Takes a frame about the watch. Returns news for each place that has changed: `{path, rows, changes, began, ended}`.
   * A change is `{key, sort, row, commitTime, skipped}`, with `row` null for a row that is gone, and `error` for one
   * that cannot be shown. With `began`, the rows have replaced all. Throws a StatecastError for a delta of an unknown
   * row.
   */
  take({ path = [], watching, rows = [], token, ended }) {
    const news = [];
    if (watching) this.#begin(path, watching);
    const place = this.#at(path);
    for (const row of place ? rows : []) {
      const key = keyOf(row, place);
      if (row.left) news.push(...this.#endBelow([...path, key]));
      place.waiting.push({ ...row, key });
    }
    if (place && token) news.push(...this.#apply(place, token));
    if (ended && path.length) news.push(...this.#endBelow(path));
    return news;
  }

  #at(path) {
    return this.#places.get(JSON.stringify(path));
  }

  #begin(path, { resumed = false, message = "", key_field: keyField, sort_field: sortField }) {
    const place = this.#at(path) ?? newPlace(path, "", new Map());
    if (!path.length) this.resumed = resumed;
    Object.assign(place, { waiting: [], anew: !resumed, message, keyField, sortField });
    this.#places.set(JSON.stringify(path), place);
  }

  #apply(place, token) {
    const { path, anew, waiting, rows: before } = place;
    const rows = new Map(anew ? [] : before);
    const changes = new Map();
    for (const entry of waiting) {
      const isKnown = before.has(entry.key) || changes.has(entry.key);
      const change = merged(entry, rows.get(entry.key), place);
      const { skipped, error, ...row } = change;
      if (change.row === null) rows.delete(entry.key);
      else rows.set(entry.key, row);
      if (isKnown || error || change.row !== null) changes.set(entry.key, change);
    }
    const gone = anew ? [...before.values()].filter(({ key }) => !rows.has(key) && !changes.has(key)) : [];
    for (const change of allGone(gone)) changes.set(change.key, change);
    Object.assign(place, { rows, token, waiting: [], anew: false });
    const ends = anew ? this.#endWithout(path, rows) : [];
    return [...ends, { path, rows, changes: [...changes.values()], began: anew, ended: false }];
  }

  #endWithout(path, rows) {
    return this.#endWhere((other) => isBelow(other, path) && other.length > path.length && !rows.has(other[path.length]));
  }

  #endBelow(path) {
    return this.#endWhere((other) => isBelow(other, path));
  }

  #endWhere(isOver) {
    const over = this.list().filter(({ path }) => isOver(path));
    for (const { path } of over) this.#places.delete(JSON.stringify(path));
    return over.map(({ path, rows }) => ({ path, rows: new Map(), changes: allGone(rows), began: false, ended: true }));
  }
}

/** A watch of a Statecast. `onRows` gets the news of Places; `rows`, `token` and `stale` are its current state. */
export class Watch {
  #what;
  #owner;
  #handlers;
  places;
  id = 0;
  /** Whether everything has arrived once. */
  isCurrent = false;
  #isOver = false;
  #blind = null; // seconds, as reported by the edge

  constructor(what, { saved, ...handlers }, owner) {
    this.#what = what;
    this.#handlers = handlers;
    this.#owner = owner;
    this.places = new Places(saved);
  }

  /** The rows by their keys, each `{key, sort, row, commitTime}`; those of places below are in `places`. */
  get rows() {
    return this.places.rows();
  }

  get token() {
    return this.places.token();
  }

  /** Whether it resumed from its token when it last began; null before. */
  get resumed() {
    return this.places.resumed;
  }

  /** The seconds for which it may have been out of date; null while the edge and the connection work. */
  get stale() {
    return this.#owner.lostFor() ?? this.#blind;
  }

  /** Returns rows and tokens as JSON: pass them as `saved` to a later `watch` of the same, even after a restart. */
  save() {
    return this.places.save();
  }

  /** Ends the watch: no handler is called after it. */
  end() {
    this.#isOver = true;
    this.#owner.drop(this);
  }

  /** Returns the request under an id, for a frame of at most the given bytes. */
  request(id, largest) {
    this.id = id;
    const request = { id, ...this.#what };
    return { ...request, ...this.places.resumption(largest - ENVELOPE - sizeOf(request)) };
  }

  take({ current, ...frame }) {
    for (const news of this.places.take(frame)) this.#tell("onRows", news);
    if (!current) return;
    this.isCurrent = true;
    this.#tell("onCurrent");
  }

  tellBlind(seconds) {
    if (seconds === this.#blind) return;
    this.#blind = seconds;
    this.#tell("onStale", seconds);
  }

  tellEnd(error) {
    this.#tell("onEnd", error);
  }

  #tell(name, ...news) {
    if (!this.#isOver) callHandler(this.#handlers, name, ...news);
  }
}

/**
 * One live connection. `state` is "connecting", "open", "waiting" for the next attempt, or "closed", with the
 * StatecastError in `reason`. Options: `onState()` runs when it has changed, `onError(error)` for errors that end no
 * watch or all, `onWarning(error)` for a part of a request that the edge ignores; `WebSocket` is for platforms without
 * one. An error of a handler is reported as uncaught, and changes nothing here.
 */
export class Statecast {
  #address;
  #options;
  #socket = null;
  #watches = new Map(); // by id; those to request again keep their old id
  #lastId = 0;
  #largestFrame = LARGEST_FRAME;
  #failures = 0;
  #need = "connect"; // the reason for the next call of credentials
  #renewed = false; // whether the last ones were refused, and newer ones have not worked yet
  #reconnectAt = 0; // as requested by an edge that stops
  #accessEnds = 0;
  #checks = 0; // of silence, since the last frame
  #lostAt = now(); // null while a socket is open
  #timers = {}; // attempt, handshake, silence, ping, renewal
  #retries = new Map(); // by watch: timers
  #listening = typeof AbortController === "undefined" ? null : new AbortController(); // to the page
  reason = null;
  state = "connecting";

  /**
   * `address` is the URL of the socket `/v1/stream`. `credentials` is a function, async or not, that returns HTTP
   * headers for a ticket to open the socket. It is called to "connect"; when a fifth of the time until access ends is
   * left, 5 minutes at most ("expiring", with the Date of the end: the socket continues without a gap); and after an
   * expiry ("expired"). It is called again when it throws, but a StatecastError ends the client if no socket is open.
   */
  constructor(address, options = {}) {
    const page = globalThis.location?.href; // React Native has none, and a URL that takes no address of a socket
    this.#address = (page ? new URL(address, page).href : String(address)).replace(/^http/, "ws");
    const isOfSocket = /^wss?:\/\/[^/]+\//.test(this.#address);
    if (!isOfSocket) throw new StatecastError("bad_address", `${address} is not that of a socket, wss://GATEWAY/v1/stream`);
    this.#options = options;
    const [comeBack, signal] = [() => globalThis.document?.hidden || this.wake(), this.#listening?.signal];
    globalThis.addEventListener?.("online", comeBack, { signal });
    globalThis.document?.addEventListener("visibilitychange", comeBack, { signal });
    queueMicrotask(() => this.state === "connecting" && this.#become("connecting", null)); // `const live` is known then
    this.#open();
  }

  /**
   * Watches by the fields of the contract's `Watch`: `{store, group, sort_from, sort_to, limit, reverse, steps, fields,
   * delta, times, interval_ms}`, or `{channel}`. Handlers: `onRows(news)`, `onCurrent()`, `onStale(seconds)`,
   * `onEnd(error)`; `saved` is the result of `save()` of a watch of the same, or a page by REST of the same range.
   */
  watch(what, handlers = {}) {
    if (this.state === "closed") throw this.reason ?? new StatecastError("closed", "this client is closed");
    const watch = new Watch(what, handlers, { drop: (each) => this.#drop(each), lostFor: () => this.#lostFor() });
    this.#watches.set(++this.#lastId, watch);
    watch.id = this.#lastId;
    if (this.state === "open") this.#ask([watch]);
    return watch;
  }

  /** Calls the edge at a path beside the socket's, `call("POST", "channels")`; returns JSON. Throws a StatecastError. */
  async call(method, path, body, [need, until] = ["connect", null]) {
    const { credentials } = this.#options;
    const headers = { ...(await credentials?.(need, until)), ...(body && { "Content-Type": "application/json" }) };
    const cutter = new AbortController();
    const timer = setTimeout(() => cutter.abort(), CALL_TIMEOUT_MS);
    try {
      const options = { method, headers, cache: "no-store", signal: cutter.signal, body: body && JSON.stringify(body) };
      options.redirect = "manual"; // another address must not see the credentials
      const answer = await fetch(this.#beside(path).replace(/^ws/, "http"), options).catch(({ message }) => {
        throw unreachable(message);
      });
      const { error, message, ...content } = (await answer.json().catch(() => null)) ?? {};
      if (answer.ok) return content;
      const reason = error?.message ?? message ?? `the server answers ${answer.status}`;
      throw new StatecastError(answer.status, reason, 1000 * answer.headers.get("Retry-After") || null);
    } finally {
      clearTimeout(timer);
    }
  }

  /** Notes that the program is in front again: connects at once, or checks that the connection still works. */
  wake() {
    if (this.state === "waiting") this.#connect();
    if (this.state !== "open") return;
    this.#send({ ping: {} });
    this.#timers.ping ??= setTimeout(() => this.#lost(this.#socket, unreachable("no answer to a ping")), PING_MS);
  }

  /** Ends the connection and all watches. */
  close() {
    this.#end(null);
  }

  #connect() {
    clearTimeout(this.#timers.attempt);
    this.#become("connecting", this.reason);
    this.#open();
  }

  async #open() {
    try {
      const { credentials, WebSocket = globalThis.WebSocket } = this.#options;
      const offers = [SUBPROTOCOL];
      if (credentials) offers.push(TICKET + (await this.#ticket(this.#need, null)));
      const address = credentials ? this.#beside("tickets/stream") : this.#address;
      if (this.state !== "closed") this.#listen((this.#socket = new WebSocket(address, offers)));
    } catch (error) {
      this.#over(error instanceof StatecastError ? error : unreachable(textOf(error)));
    }
  }

  #listen(socket) {
    this.#timers.handshake = setTimeout(() => this.#lost(socket, unreachable("the handshake was not answered")), HANDSHAKE_MS);
    socket.onopen = () => {
      clearTimeout(this.#timers.handshake);
      this.#checks = 0;
      this.#timers.silence = setInterval(() => this.#check(socket), SILENCE_CHECK_MS);
    };
    socket.onmessage = ({ data }) => {
      try {
        this.#receive(JSON.parse(data));
      } catch ({ message }) {
        const text = `the server sends a frame that is not of ${SUBPROTOCOL}: ${message}`;
        this.#lost(socket, new StatecastError("malformed_frame", text));
      }
    };
    socket.onerror = () => setTimeout(() => this.#lost(socket, unreachable("the socket has failed")), 0); // a close event has more detail
    socket.onclose = ({ code, reason }) => this.#lost(socket, new StatecastError(code, reason || `closed with ${code}`));
  }

  /** Takes the limits of a new socket, and requests all watches; its handlers may begin and end some, or close. */
  #greet({ max_request_bytes: largest = LARGEST_FRAME, expires_in_s: seconds }) {
    const watches = [...this.#watches.values()].filter((watch) => !this.#retries.has(watch));
    [this.#need, this.#lostAt, this.#largestFrame] = ["connect", null, largest];
    this.#renewIn(seconds);
    this.#become("open", null);
    this.#ask(watches.filter((watch) => this.#watches.get(watch.id) === watch));
    for (const watch of this.#watches.values()) watch.tellBlind(null);
  }

  #check(socket) {
    if (++this.#checks >= CHECKS) this.#lost(socket, unreachable("the line is silent"));
  }

  #lost(socket, error) {
    if (socket !== this.#socket || socket === null) return; // it was given up before
    this.#socket = null;
    this.#stopTimers();
    leave(socket);
    this.#lostAt ??= now();
    for (const { places } of this.#watches.values()) places.cut();
    this.#over(error);
  }

  #over(error) {
    const renewable = EXPIRED.includes(error.code) && this.#options.credentials && !this.#renewed;
    const status = Number(error.code);
    const isRefused = status >= 400 && status < 500 && !PASSING.includes(error.code);
    const isFatal = isRefused || [TOO_LARGE, REVOKED, ...EXPIRED].includes(error.code) || !isPassing(error.code);
    if (renewable) [this.#need, this.#renewed] = ["expired", true];
    if (this.state === "closed" || (isFatal && !renewable)) return this.#end(error);
    const ceiling = Math.min(FIRST_PAUSE_MS * 2 ** this.#failures++, LONGEST_PAUSE_MS);
    const asked = Math.max(error.retryMs ?? 0, this.#reconnectAt - now(), 0);
    const pause = Math.min(asked + ceiling * (0.5 + Math.random() / 2), LONGEST_TIMER_MS); // never all at once
    this.#timers.attempt = setTimeout(() => this.#connect(), pause);
    this.#become("waiting", error);
  }

  #end(error) {
    if (this.state === "closed") return;
    this.#stopTimers();
    for (const timer of this.#retries.values()) clearTimeout(timer);
    this.#listening?.abort();
    const [watches, socket] = [[...this.#watches.values()], this.#socket];
    this.#watches.clear();
    this.#socket = null;
    this.#become("closed", error);
    if (socket) leave(socket);
    for (const watch of watches) error ? queueMicrotask(() => watch.tellEnd(error)) : watch.end();
    if (error) callHandler(this.#options, "onError", error);
  }

  #lostFor() {
    return this.#lostAt === null ? null : (now() - this.#lostAt) / 1000;
  }

  #drop(watch) {
    if (!this.#watches.delete(watch.id)) return;
    clearTimeout(this.#retries.get(watch));
    if (!this.#retries.delete(watch) && this.state === "open") this.#send({ unwatch: [watch.id] });
  }

  /** Requests watches under new ids, as many per frame as fit. */
  #ask(watches) {
    let [frame, size] = [[], ENVELOPE];
    for (const watch of watches) {
      this.#watches.delete(watch.id);
      const request = watch.request(++this.#lastId, this.#largestFrame);
      this.#watches.set(request.id, watch);
      const own = sizeOf(request) + 1; // and a comma
      if (frame.length && size + own > this.#largestFrame) {
        this.#send({ watch: frame });
        [frame, size] = [[], ENVELOPE];
      }
      frame.push(request);
      size += own;
    }
    if (frame.length) this.#send({ watch: frame });
  }

  #send(frame) {
    this.#socket.send(JSON.stringify(frame));
  }

  #receive(frame) {
    this.#checks = 0;
    clearTimeout(this.#timers.ping);
    this.#timers.ping = null;
    if (frame.hello) return this.#greet(frame.hello);
    [this.#failures, this.#renewed] = [0, false];
    if (frame.id) return this.#about(frame, this.#watches.get(frame.id));
    if (frame.ping) this.#takePing(frame.ping);
    if (frame.access) this.#renewIn(frame.access.expires_in_s);
    if (frame.reconnect) this.#reconnectAt = now() + (frame.reconnect.delay_ms ?? 0);
    if (frame.warning) callHandler(this.#options, "onWarning", errorOf(frame.warning));
    if (!frame.error) return;
    callHandler(this.#options, "onError", errorOf(frame.error));
    if (frame.error.code === "ticket_refused") this.#renewLater(); // with another one
  }

  #about(frame, watch) {
    if (!watch || this.#retries.has(watch)) return; // late, for a watch that has ended here
    try {
      watch.take(frame);
    } catch (error) {
      if (!(error instanceof StatecastError)) throw error;
      watch.places.forgetTokens();
      this.#send({ unwatch: [watch.id] });
      this.#ask([watch]);
      return callHandler(this.#options, "onError", error);
    }
    if (frame.ended && !frame.path?.length && this.#watches.has(watch.id)) this.#ended(errorOf(frame.ended), watch);
  }

  #ended(error, watch) {
    watch.places.cut();
    if (error.retryMs === null) {
      this.#watches.delete(watch.id);
      return watch.tellEnd(error);
    }
    const again = () => this.#retries.delete(watch) && this.state === "open" && this.#ask([watch]);
    this.#retries.set(watch, setTimeout(again, error.retryMs));
  }

  #takePing({ bookmarks = [], blind = [] }) {
    for (const mark of bookmarks) this.#watches.get(mark.id)?.places.bookmark(mark);
    const seconds = new Map(blind.flatMap(({ ids = [...this.#watches.keys()], lag_s = 0 }) => ids.map((id) => [id, lag_s])));
    for (const [id, watch] of this.#watches) watch.tellBlind(seconds.get(id) ?? null);
  }

  #renewIn(seconds) {
    if (!seconds || !this.#options.credentials) return;
    this.#accessEnds = now() + seconds * 1000;
    this.#renewLater();
  }

  /** Renews access in time, also after a failure, until the edge closes the socket. */
  #renewLater() {
    clearTimeout(this.#timers.renewal);
    const left = this.#accessEnds - now();
    if (this.#socket === null || left <= 0) return;
    const pause = Math.max(left * RENEWED_AT, left - LONGEST_AHEAD_MS, SHORTEST_TIMER_MS);
    this.#timers.renewal = setTimeout(() => this.#renew(this.#socket), Math.min(pause, LONGEST_TIMER_MS));
  }

  async #renew(socket) {
    try {
      const ticket = await this.#ticket("expiring", new Date(Date.now() + this.#accessEnds - now()));
      if (socket === this.#socket) this.#send({ renew: { ticket } });
    } catch (error) {
      if (socket !== this.#socket) return;
      const text = `the access could not be renewed: ${textOf(error)}`;
      callHandler(this.#options, "onError", new StatecastError("not_renewed", text));
      this.#renewLater();
    }
  }

  async #ticket(need, until) {
    const { ticket } = await this.call("POST", "tickets", undefined, [need, until]);
    if (typeof ticket !== "string") throw unreachable("the server does not answer as ws-edge does: there is no ticket");
    return ticket;
  }

  #stopTimers() {
    for (const timer of Object.values(this.#timers)) clearTimeout(timer); // also ends the interval
    this.#timers = {};
  }

  #beside(path) {
    const [place] = this.#address.split(/[?#]/);
    return place.slice(0, place.lastIndexOf("/") + 1) + path;
  }

  #become(state, reason) {
    Object.assign(this, { state, reason });
    callHandler(this.#options, "onState", state);
  }
}

const newPlace = (path, token, rows) => ({ path, token, rows, waiting: [], anew: false });
const allGone = (rows) => [...rows.values()].map(({ key, sort }) => ({ key, sort, row: null, commitTime: null, skipped: 0 }));
const isBelow = (path, top) => top.every((row, depth) => row === path[depth]);
const sizeOf = (value) => JSON.stringify(value).replace(/[^\x00-\x7f]/g, "three").length;
const rowOf = ({ key = "", sort = "", row, commit_time: commitTime = null }) => ({ key, sort, row, commitTime });
const keyOf = ({ key, row }, { keyField }) => key ?? (keyField && row?.[keyField]) ?? "";
const textOf = (error) => error?.message ?? String(error); // a program may throw anything
const unreachable = (message) => new StatecastError("unreachable", message);
const errorOf = ({ code = "", message = "", retry_ms: retryMs = null }) => new StatecastError(code, message || code, retryMs);
/** Whether the failure may be temporary: a close code or status that is no refusal, or no answer at all. */
const isPassing = (code) => code === "unreachable" || Number.isInteger(Number(code));

/** Closes a socket and ignores the frames that come until its end: npm's ws and React Native pass them on. */
function leave(socket) {
  socket.onopen = socket.onmessage = null;
  socket.close();
}

/** Returns a page by REST, if there is one, as the only place of a watch. */
function pageOf(page) {
  if (!page) return [];
  const rows = (page.rows ?? []).filter((each) => "row" in each);
  return [{ path: [], token: page.token, rows: rows.map(rowOf) }];
}

/** Returns a received row as a change of the current one: whole, its delta merged, or gone. */
function merged(entry, held, { sortField }) {
  const { key, row, delta, left, error, commit_time: time, skipped = 0 } = entry;
  const commitTime = time ?? null;
  const sort = entry.sort ?? held?.sort ?? "";
  if (left || error) return { key, sort, row: null, commitTime, skipped, ...(error && { error: errorOf(error) }) };
  if (delta && !held) throw new StatecastError("no_base", `there is no row ${JSON.stringify(key)} for the changes that came`);
  const whole = delta ? patched(held.row, delta) : row;
  return { key, sort: entry.sort ?? (sortField && whole?.[sortField]) ?? held?.sort ?? "", row: whole, commitTime, skipped };
}

/** A merge patch of one level: fields with new values, null for removed ones. */
function patched(row, delta) {
  return Object.fromEntries(Object.entries({ ...row, ...delta }).filter(([name]) => delta[name] !== null));
}

/** Calls a handler of the program, if it has one. Its error is the program's own: it is reported as uncaught. */
function callHandler(handlers, name, ...news) {
  try {
    handlers[name]?.(...news);
  } catch (error) {
    if (globalThis.reportError) globalThis.reportError(error);
    else Promise.reject(error);
  }
}
