/** A scripted server: sockets that a test answers, and tickets. */

import { mock } from "node:test";
import { Statecast } from "../statecast.js";

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

  opens() {
    this.onopen();
    this.tells({ hello: { protocol: 2, expires_in_s: 1000, max_watches: 1000 } });
  }

  tells(frame) {
    this.onmessage({ data: JSON.stringify(frame) });
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

  constructor() {
    mock.timers.enable({ apis: ["setTimeout", "setInterval", "Date"], now: 1_000_000 });
    globalThis.fetch = async () => {
      const [status, headers] = this.tickets.shift() ?? [200, {}];
      const body = status === 200 ? { ticket: "t" } : { error: { code: "no", message: "refused" } };
      return new Response(JSON.stringify(body), { status, headers });
    };
  }

  /** Makes the client; `credentials` is what it answers each time, or throws. */
  connect(...credentials) {
    const { sockets } = this;
    const WebSocket = class extends Socket {
      constructor(...told) {
        super(...told);
        sockets.push(this);
      }
    };
    const answer = (need) => {
      this.needs.push(need);
      const token = credentials.length > 1 ? credentials.shift() : credentials[0];
      if (token instanceof Error) throw token;
      return { Authorization: token };
    };
    this.client = new Statecast("http://edge.test/v1/stream", {
      ...(credentials.length && { credentials: answer }),
      WebSocket,
      onState: (state) => this.states.push(state),
      onError: ({ code }) => this.errors.push(code),
      onWarning: ({ code }) => this.warnings.push(code),
    });
    return this.client;
  }

  get socket() {
    return this.sockets.at(-1);
  }

  /** Lets so much time pass, and what is due then. */
  async passes(milliseconds) {
    mock.timers.tick(milliseconds);
    for (let turn = 0; turn < 5; turn += 1) await new Promise((done) => setImmediate(done));
  }

  ends() {
    this.client.close();
    mock.timers.reset();
  }
}
