/** Plays the JavaScript client, on Node, in the scenario of all clients; testkit.push_player says how. */

import { createInterface } from "node:readline";
import { Statecast } from "../statecast.js";

const needs = [];
const watches = new Map(); // by name: the watch, its changes, and why it has ended
let [live, headers] = [null, null];

/** A socket as the gateway would pass it on. */
class GatewaySocket extends WebSocket {
  constructor(address, protocols) {
    super(address, { protocols, headers });
  }
}

function credentials(need) {
  needs.push(need);
  if (headers === null) throw new Error("there are no credentials now");
  return headers;
}

function stateOf({ watch, changes, ended }) {
  const rows = watch.places.list().flatMap(({ path, rows: ofPlace }) => {
    return [...ofPlace.values()].map(({ key, row }) => [[...path, key].join("/"), row]);
  });
  const { isCurrent: current, resumed, stale } = watch;
  return { rows: Object.fromEntries(rows), changes, current, resumed, stale, ended };
}

const commands = {
  open({ address, headers: first }) {
    headers = first;
    live = new Statecast(address, { credentials, WebSocket: GatewaySocket });
  },
  credentials({ headers: next }) {
    headers = next;
  },
  watch({ name, what, saved }) {
    const watching = { changes: [], ended: null };
    const onRows = ({ path, changes }) => {
      for (const { key, row, error } of changes) watching.changes.push([[...path, key].join("/"), error?.code ?? row]);
    };
    const onEnd = ({ code }) => (watching.ended = code);
    watching.watch = live.watch(what, { saved, onRows, onEnd });
    watches.set(name, watching);
  },
  unwatch({ name }) {
    watches.get(name).watch.end();
    watches.delete(name);
  },
  saved({ name }) {
    return { saved: watches.get(name).watch.save() };
  },
  wake() {
    live.wake();
  },
  state() {
    const all = [...watches].map(([name, watching]) => [name, stateOf(watching)]);
    return { reason: live.reason?.code ?? null, needs, watches: Object.fromEntries(all) };
  },
};

for await (const line of createInterface({ input: process.stdin })) {
  const { do: name, ...fields } = JSON.parse(line);
  process.stdout.write(`${JSON.stringify(commands[name](fields) ?? {})}\n`);
}
process.exit();
