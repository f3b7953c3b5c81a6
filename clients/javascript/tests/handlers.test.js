/** Handlers that throw, or close and begin what they hear of; wrong frames, and saved rows that are none. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, test } from "node:test";
import { Statecast, StatecastError } from "../statecast.js";
import { MARKETS, Server, WATCHING } from "./server.js";

let server;

beforeEach(() => {
  server = new Server();
});
afterEach(() => server.ends());

test("handlers that throw are reported, and stop nothing", async () => {
  const fails = () => {
    throw new StatecastError("mine", "a bug of the program");
  };
  server.connect();
  Object.assign(server.options, { onState: fails, onError: fails, onWarning: fails });
  const { watch } = server.watched(MARKETS, { onRows: fails, onCurrent: fails, onStale: fails });
  const { heard } = server.watched({ store: "orders-by-key", group: "o1" });
  server.socket.opens();
  const { "odds-by-match": markets, "orders-by-key": orders } = server.socket.watches;
  server.socket.tells({ id: markets.id, watching: WATCHING, rows: [{ row: { id: "a" } }], token: "A", current: true });
  server.socket.tells({ ping: { blind: [{ lag_s: 12 }] } });
  server.socket.tells({ error: { code: "malformed_frame", message: "no JSON" }, warning: { code: "w", message: "m" } });
  server.socket.tells({ id: orders.id, watching: WATCHING, rows: [{ row: { id: "b" } }], token: "B" });
  await server.passes(0);

  assert.deepEqual([watch.token, watch.isCurrent, heard.stale, heard.news.length], ["A", true, [12], 1]);
  assert.deepEqual([server.socket.sent.length, new Set(server.uncaught)], [1, new Set(["a bug of the program"])]);

  server.socket.ends(1006);
  await server.passes(250);
  assert.equal(server.sockets.length, 2);
});

test("no handler is called after the end of its watch, or of the client", async () => {
  server.connect();
  let [calls, watch] = [0, null];
  const ends = (end) => () => {
    calls += 1;
    end();
  };
  const below = (id) => ({ id, watching: WATCHING, rows: [{ row: { id: "a" } }], token: "A", current: true, ended: { retry_ms: 1 } });
  ({ watch } = server.watched(MARKETS, { onRows: ends(() => watch.end()), onCurrent: ends(() => {}) }));
  server.socket.opens();
  server.socket.tells(below(server.socket.watches["odds-by-match"].id));
  await server.passes(300);
  assert.deepEqual([calls, server.socket.sent.filter((frame) => frame.watch).length], [1, 1]);

  server.watched(MARKETS, { onRows: ends(() => server.client.close()), onCurrent: ends(() => {}) });
  server.socket.tells(below(server.socket.watches["odds-by-match"].id));
  assert.equal(calls, 2);
});

test("a handler may use the client from its first call on", async () => {
  const states = [];
  const client = new Statecast("ws://edge.test/v1/stream", { WebSocket: class {}, onState: () => states.push(client.state) });
  server.client = { close() {} };
  await server.passes(0);

  assert.deepEqual([states, server.uncaught], [["connecting"], []]);
});

test("a program may close the client when it opens, or begin watches", async () => {
  server.connect();
  server.options.onState = (state) => state === "open" && server.watched();
  server.socket.opens();
  assert.deepEqual(server.socket.sent.map(({ watch }) => watch.length), [1]);

  server.options.onState = (state) => state === "open" && server.client.close();
  server.socket.ends(1006);
  await server.passes(250);
  server.socket.opens();
  assert.equal(server.client.state, "closed");
  assert.equal(server.socket.sent.length, 0);
});

test("a hello that comes while the socket closes does not open a closed client again", async () => {
  const client = server.connect();
  const { socket } = server;
  client.close();
  socket.onopen?.();
  socket.onmessage?.({ data: JSON.stringify({ hello: { protocol: 2 } }) });
  await server.passes(0);

  assert.deepEqual([client.state, server.states.includes("open")], ["closed", false]);
  assert.throws(() => client.watch(MARKETS), { code: "closed" });
});

test("nothing is renewed for a client that was closed by a handler", async () => {
  server.connect("any");
  await server.passes(0);
  server.socket.opens();
  server.options.onError = () => server.client.close();
  server.socket.tells({ error: { code: "ticket_refused", message: "used" } });
  await server.passes(1_000_000);

  assert.deepEqual(server.needs, ["connect"]);
});

for (const text of ["no JSON", "null"]) {
  test(`the frame \`${text}\` ends the client with its reason`, () => {
    server.connect();
    server.socket.opens();
    server.socket.says(text);

    assert.deepEqual([server.client.state, server.client.reason.code], ["closed", "malformed_frame"]);
    assert.match(server.client.reason.message, /not of statecast\.push\.v2/);
  });
}

test("what is not the result of save is refused, and harms no other watch", () => {
  server.connect();
  for (const saved of [{}, [{}], [{ path: [], token: "A" }], [{ path: [], token: 7, rows: [] }]]) {
    assert.throws(() => server.watched(MARKETS, { saved }), { code: "malformed_saved" });
  }
  server.watched();
  server.socket.opens();
  assert.equal(server.socket.sent[0].watch.length, 1);
});
