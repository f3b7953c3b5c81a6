/** A scripted server: sockets that a test answers, and tickets. */

import { mock } from "node:test";
import { Statecast } from "../statecast.js";

export const MARKETS = { store: "odds-by-match", group: "m1" };
export const WATCHING = { message: "json", key_field: "id" };

/** A line at which a test speaks for the edge. */
export class Socket {
  constructor(address, offers) {
    Object.assign(this, { address, offers, sent: [], isClosed: false });
  }

  send(text) {
    this.sent.push(JSON.parse(text));
  }

  close() {
    this.isClosed = true;
  }

  opens(limits = {}) {
    this.onopen();
    this.tells({ hello: { protocol: 2, expires_in_s: 1000, max_watches: 1000, ...limits } });
  }

  tells(frame) {
    this.says(JSON.stringify(frame));
  }

  says(text) {
    this.onmessage({ data: text });
  }

  ends(code, reason = "") {
    this.onclose({ code, reason });
  }

  /** The watches that were asked for, by their stores. */
  get watches() {
    return Object.fromEntries(this.sent.flatMap(({ watch = [] }) => watch).map((each) => [each.store, each]));
  }
}

/** A client with its sockets, what it reports, and the answers of `POST /v1/tickets`, 200 where there is none. */
export class Server {
  sockets = [];
  states = [];
  errors = [];
  warnings = [];
  needs = [];
  tickets = [];
  uncaught = [];
  uptime = 0;

  constructor() {
    mock.method(performance, "now", () => this.uptime);
    globalThis.reportError = ({ message }) => this.uncaught.push(message);
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
    globalThis.fetch = async (address, options) => {
      this.fetched = { address: String(address), ...options };
      const [status, headers, answer = { ticket: "t" }] = this.tickets.shift() ?? [200, {}];
      if (status === 0) throw new TypeError("fetch failed");
      const body = status === 200 ? answer : { error: { code: "no", message: "refused" } };
      return new Response(JSON.stringify(body), { status, headers });
    };
  }

  /** A watch whose news and end are kept. */
  watched(what = MARKETS, handlers = {}) {
    const heard = { news: [], ends: [], stale: [] };
    const onRows = (news) => heard.news.push(news);
    const onEnd = ({ code }) => heard.ends.push(code);
    const watch = this.client.watch(what, { onRows, onEnd, onStale: (seconds) => heard.stale.push(seconds), ...handlers });
    return { watch, heard };
  }

  /** Makes the client; `credentials` is what it answers each time, or throws. */
  connect(...credentials) {
    const { sockets } = this;
    const WebSocket = class extends Socket {
      constructor(address, offers) {
        super(address, offers);
        sockets.push(this);
      }
    };
    const answer = (need) => {
      this.needs.push(need);
      const token = credentials.length > 1 ? credentials.shift() : credentials[0];
      if (token instanceof Error || token === undefined) throw token;
      return { Authorization: token };
    };
    this.options = {
      ...(credentials.length && { credentials: answer }),
      WebSocket,
      onState: (state) => this.states.push(state),
      onError: ({ code }) => this.errors.push(code),
      onWarning: ({ code }) => this.warnings.push(code),
    };
    this.client = new Statecast("http://edge.test/v1/stream", this.options);
    return this.client;
  }

  get socket() {
    return this.sockets.at(-1);
  }

  /** Lets so much time pass, and what is due then. */
  async passes(milliseconds) {
    this.uptime += milliseconds;
    mock.timers.tick(milliseconds);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((done) => setImmediate(done));
  }

  ends() {
    this.client.close();
    mock.timers.reset();
    mock.restoreAll();
  }
}
