/** What ends the client and what does not, how it resumes, renews and finds dead lines. Its server is scripted. */

import assert from "node:assert/strict";
import { afterEach, beforeEach, mock, test } from "node:test";
import { Statecast, StatecastError } from "../statecast.js";
import { MARKETS, Server, WATCHING } from "./server.js";

let server;

beforeEach(() => {
  server = new Server();
});
afterEach(() => server.ends());

/** Lets time pass at a line that lives. */
async function live(milliseconds) {
  for (let passed = 0; passed < milliseconds; passed += 10_000) {
    await server.passes(10_000);
    server.socket.tells({ ping: {} });
  }
}

for (const code of [1009, 4403]) {
  test(`close code ${code} ends all watches with its reason`, async () => {
    server.connect();
    const { heard } = server.watched();
    server.socket.opens();
    server.socket.ends(code, "so it is");
    await server.passes(0);

    assert.deepEqual([server.client.state, server.client.reason.message], ["closed", "so it is"]);
    assert.deepEqual([heard.ends, server.errors], [[String(code)], [String(code)]]);
    assert.throws(() => server.client.watch(MARKETS), { code: String(code) });
  });
}

for (const code of [1001, 1006, 1011, 1012, 4999]) {
  test(`after close code ${code} it connects again, with tokens`, async () => {
    server.connect();
    server.watched();
    server.socket.opens();
    const { id } = server.socket.watches["odds-by-match"];
    server.socket.tells({ id, watching: WATCHING, rows: [{ row: { id: "a" } }], token: "A" });
    server.socket.tells({ id, rows: [{ row: { id: "b" } }] });
    server.socket.ends(code);
    await server.passes(250);
    server.socket.opens();

    const again = server.socket.watches["odds-by-match"];
    assert.equal(server.sockets.length, 2);
    assert.deepEqual([again.token, again.id > id], ["A", true]);
    assert.deepEqual(server.errors, []);
  });
}

test("pauses grow to ten seconds, until a frame other than hello comes", async () => {
  server.connect();
  for (let failure = 0; failure < 8; failure += 1) {
    server.socket.ends(1006);
    await server.passes(10_000);
  }
  server.socket.opens();
  server.socket.ends(1006);
  await server.passes(4000);
  assert.equal(server.client.state, "waiting");

  await server.passes(6000);
  server.socket.opens();
  server.socket.tells({ ping: {} });
  server.socket.ends(1006);
  await server.passes(250);
  assert.equal(server.client.state, "connecting");
});

test("it comes back when the edge that stops has said", async () => {
  server.connect();
  server.socket.opens();
  server.socket.tells({ reconnect: { delay_ms: 5000 } });
  server.socket.ends(1012);
  await server.passes(5000);
  assert.equal(server.sockets.length, 1, "all clients of the edge would come at once");

  await server.passes(250);
  assert.equal(server.sockets.length, 2);
});

test("expired credentials are asked for once more", async () => {
  server.connect("old", "new");
  await server.passes(0);
  server.socket.opens();
  server.socket.ends(4401);
  await server.passes(250);
  server.socket.opens();
  server.socket.ends(4401);

  assert.deepEqual([server.client.state, server.client.reason.code], ["closed", "4401"]);
  assert.deepEqual(server.needs, ["connect", "expired"]);
  assert.deepEqual([server.socket.address, server.socket.offers], [
    "ws://edge.test/v1/tickets/stream",
    ["statecast.push.v2+json", "statecast.ticket.t"],
  ]);
});

test("without credentials an expiry ends the client", () => {
  server.connect();
  server.socket.opens();
  server.socket.ends(4401);

  assert.equal(server.client.state, "closed");
});

for (const [status, needs] of [[401, ["connect", "expired"]], [403, ["connect"]], [404, ["connect"]]]) {
  test(`a ticket that is refused with ${status} ends the client`, async () => {
    server.tickets = [[status, {}], [status, {}]];
    server.connect("any");
    await server.passes(0);
    await server.passes(250);

    assert.deepEqual([server.client.state, server.needs, server.sockets], ["closed", needs, []]);
  });
}

test("a ticket that is refused for a while is asked for again when the answer says", async () => {
  server.tickets = [[503, { "Retry-After": "20" }]];
  server.connect("any");
  await server.passes(0);
  await server.passes(20_000);
  assert.equal(server.client.state, "waiting");

  await server.passes(250);
  assert.equal(server.sockets.length, 1);
  assert.equal(server.fetched.redirect, "manual", "another address must not see the credentials");
});

test("credentials that cannot be had are asked for again, and those of a person who has left end the client", async () => {
  server.connect(new TypeError("the issuer is down"), new StatecastError("signed_out", "the person has left"));
  await server.passes(0);
  assert.equal(server.client.state, "waiting");

  await server.passes(250);
  assert.deepEqual([server.client.state, server.errors], ["closed", ["signed_out"]]);
});

test("credentials may fail without an error, as a rejected promise does", async () => {
  server.connect(undefined, "any", undefined, "any");
  await server.passes(0);
  assert.equal(server.client.state, "waiting");

  await server.passes(250);
  server.socket.opens();
  await live(970_000);
  assert.deepEqual([server.errors, server.socket.sent], [["not_renewed"], [{ renew: { ticket: "t" } }]]);
});

test("access is renewed before it ends, and again when a ticket is refused", async () => {
  server.connect("any");
  await server.passes(0);
  server.socket.opens();
  await live(790_000);
  assert.deepEqual(server.needs, ["connect"]);

  await live(10_000);
  assert.deepEqual(server.socket.sent, [{ renew: { ticket: "t" } }]);

  server.socket.tells({ error: { code: "ticket_refused", message: "used", retry_ms: 1000 } });
  await live(150_000);
  assert.equal(server.socket.sent.length, 1);
  await live(10_000);
  assert.equal(server.socket.sent.length, 2);

  server.socket.tells({ access: { expires_in_s: 100 } });
  await live(80_000);
  assert.deepEqual(server.needs, ["connect", "expiring", "expiring", "expiring"]);
});

test("a line that is silent for 45 seconds is dead, and one with pings is not", async () => {
  server.connect();
  server.socket.opens();
  for (let count = 0; count < 6; count += 1) {
    await server.passes(20_000);
    server.socket.tells({ ping: {} });
  }
  assert.equal(server.client.state, "open");

  await server.passes(45_000);
  assert.deepEqual([server.client.reason.code, server.sockets[0].isClosed], ["unreachable", true]);
});

test("a line that spoke 40 seconds ago is not dead", async () => {
  server.connect();
  server.socket.opens();
  await server.passes(14_000);
  server.socket.tells({ ping: {} });
  await server.passes(35_000);

  assert.equal(server.client.state, "open");
});

test("the time of day may jump", async () => {
  server.connect();
  server.watched();
  server.socket.opens();
  server.socket.tells({ reconnect: { delay_ms: 5000 } });
  mock.method(Date, "now", () => 0);
  server.socket.ends(1012);
  await server.passes(5250);

  assert.equal(server.sockets.length, 2);
});

test("a handshake without an answer ends after 10 seconds", async () => {
  server.connect();
  await server.passes(10_000);

  assert.deepEqual([server.client.state, server.client.reason.code], ["waiting", "unreachable"]);
});

test("a socket that only fails counts as closed", async () => {
  server.connect();
  server.socket.onerror({});
  await server.passes(0);

  assert.equal(server.client.reason.code, "unreachable");
});

test("a program that comes back to the front finds out whether the line lives, or connects at once", async () => {
  server.connect();
  server.socket.opens();
  server.client.wake();
  server.socket.tells({ ping: {} });
  await server.passes(5000);
  assert.equal(server.client.state, "open");

  server.client.wake();
  await server.passes(5000);
  assert.deepEqual([server.socket.sent, server.client.state], [[{ ping: {} }, { ping: {} }], "waiting"]);

  server.client.wake();
  assert.equal(server.sockets.length, 2);
});

test("a watch that may be asked for again is, unless it was ended meanwhile", async () => {
  server.connect();
  const [{ heard }, { watch: other }] = [server.watched(), server.watched({ store: "orders-by-key", group: "o1" })];
  server.socket.opens();
  for (const { id } of Object.values(server.socket.watches)) {
    server.socket.tells({ id, ended: { code: "store_changed", retry_ms: 300 } });
  }
  other.end();
  await server.passes(300);

  assert.deepEqual(server.socket.sent.slice(1).map(({ watch }) => watch.map(({ store }) => store)), [["odds-by-match"]]);
  assert.deepEqual(heard.ends, []);
});

test("late frames of a watch that has ended are ignored", () => {
  server.connect();
  const { watch, heard } = server.watched();
  server.socket.opens();
  const { id } = server.socket.watches["odds-by-match"];
  watch.end();
  server.socket.tells({ id, watching: WATCHING, rows: [{ row: { id: "a" } }], token: "A" });
  server.socket.tells({ id, ended: {} });

  assert.deepEqual([server.socket.sent.at(-1), heard.news, heard.ends], [{ unwatch: [id] }, [], []]);
});

test("a thousand watches are few frames, none larger than the edge reads", () => {
  server.connect();
  for (let number = 0; number < 1000; number += 1) server.watched({ store: "orders-by-key", group: `ordér-${number}`.padEnd(80, "é") });
  server.socket.opens();

  const sizes = server.socket.sent.map((frame) => new TextEncoder().encode(JSON.stringify(frame)).length);
  assert.ok(sizes.length < 10 && Math.max(...sizes) < 65_536, String(sizes));
});

test("the newest ping says which watches are out of date, and brings tokens of quiet ones", () => {
  server.connect();
  const [{ watch, heard }, { heard: others }] = [server.watched(), server.watched({ store: "orders-by-key", group: "o1" })];
  server.socket.opens();
  const { id } = server.socket.watches["odds-by-match"];
  server.socket.tells({ id, watching: WATCHING, token: "A", current: true });
  server.socket.tells({ ping: { bookmarks: [{ id, token: "B" }], blind: [{ ids: [id], lag_s: 12 }] } });
  assert.deepEqual([watch.token, watch.stale, watch.isCurrent], ["B", 12, true]);

  server.socket.tells({ ping: { blind: [{ lag_s: 30 }] } });
  server.socket.tells({ ping: {} });
  assert.deepEqual([heard.stale, others.stale], [[12, 30, null], [30, null]]);
});

test("changes of a row that is not there begin the watch anew", () => {
  server.connect();
  server.watched();
  server.socket.opens();
  const { id } = server.socket.watches["odds-by-match"];
  server.socket.tells({ id, watching: WATCHING, token: "A" });
  server.socket.tells({ id, rows: [{ key: "a", delta: {} }], token: "B" });

  const again = server.socket.watches["odds-by-match"];
  assert.deepEqual([server.errors, again.id > id, again.token], [["no_base"], true, undefined]);
});

test("errors and warnings of the edge reach the program, and end nothing", () => {
  server.connect();
  server.socket.opens();
  server.socket.tells({ error: { code: "malformed_frame", message: "no JSON" } });
  server.socket.tells({ warning: { code: "unknown_field", message: "limmit is unknown" } });

  assert.deepEqual([server.errors, server.warnings, server.client.state], [["malformed_frame"], ["unknown_field"], "open"]);
});

test("no frame is larger than hello says", () => {
  server.connect();
  for (let number = 0; number < 9; number += 1) server.watched({ store: "orders-by-key", group: `order-${number}` });
  server.socket.opens({ max_request_bytes: 128 });

  const sizes = server.socket.sent.map((frame) => JSON.stringify(frame).length);
  assert.ok(sizes.length > 3 && Math.max(...sizes) <= 128, String(sizes));
});

test("an answer without a ticket, as of a hotel's network, is no ticket", async () => {
  server.tickets = [[200, {}, { welcome: true }], [0]];
  server.connect("any");
  await server.passes(0);
  assert.deepEqual([server.client.state, server.sockets.length], ["waiting", 0]);

  await assert.rejects(server.client.call("GET", "stores"), { code: "unreachable" });
});

test("a pause of years is none of a moment", async () => {
  server.tickets = [[503, { "Retry-After": "99999999" }]];
  server.connect("any");
  await server.passes(0);
  await server.passes(1000);

  assert.equal(server.client.state, "waiting");
});

for (const address of ["gateway:8080", "ws://gateway", "/v1/stream"]) {
  test(`${address}, which is none of a socket, is refused at once`, () => {
    server.connect();

    assert.throws(() => new server.client.constructor(address), { message: new RegExp(`^${address} is not that of a socket`) });
  });
}

test("it connects on React Native, where URL takes no address of a socket", async (t) => {
  t.mock.method(globalThis, "URL", function URL(address, base) {
    throw new TypeError(`Invalid base URL: ${base}`);
  });
  server.connect("any");
  await server.passes(0);

  assert.deepEqual([server.fetched.address, server.socket?.address], [
    "http://edge.test/v1/tickets",
    "ws://edge.test/v1/tickets/stream",
  ]);
});

test("a page gives the path alone", async () => {
  globalThis.location = { href: "https://shop.test/orders?page=2" };
  const sockets = [];
  const WebSocket = class {
    constructor(address) {
      sockets.push(address);
    }

    close() {}
  };
  server.client = new Statecast("/v1/stream", { WebSocket });
  delete globalThis.location;

  assert.deepEqual(sockets, ["wss://shop.test/v1/stream"]);
});
