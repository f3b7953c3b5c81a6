/** What a program in TypeScript writes; tsc refuses each call below the line that expects an error. */

import { Statecast, StatecastError, type contract, type SavedPlace } from "statecast";

const live = new Statecast("wss://gateway/v1/stream", {
  credentials: async (need, until) => ({ apikey: need === "expiring" ? `before ${until?.toISOString()}` : "alice" }),
  onState: (state) => console.log(state === "waiting"),
  onError: ({ code, retryMs }) => console.log(code.length, retryMs),
  WebSocket,
});
const saved: SavedPlace[] | null = JSON.parse(localStorage.getItem("board") ?? "null");
const board = live.watch<contract.OddsV1Market>(
  { store: "odds-by-match", group: "match-000123", fields: ["name", "suspended"], delta: true, interval_ms: 0 },
  {
    saved,
    onRows: ({ path, changes, rows }) => {
      for (const { key, row, error } of changes) console.log(path.join(), key, row?.suspended, error?.code, rows.size);
    },
    onStale: (seconds) => console.log(seconds === null),
    onEnd: (error) => console.log(error instanceof StatecastError),
  },
);
const names: (string | undefined)[] = [...board.rows.values()].map(({ row }) => row.name);
const seconds: number | null = board.stale;
localStorage.setItem("board", JSON.stringify(board.save()));
live.watch({ store: "matches-by-sport", group: "football", steps: [{ store: "odds-by-match", group_field: "match_id" }] });
live.watch({ channel: "q1sFh0pXvT2mCw9aZk4LdA" }).end();
await live.call("PUT", "channels/q1/watches/board", { watch: { store: "odds-by-match", group: "m1" } });
live.wake();
live.close();
console.log(names, seconds);

// @ts-expect-error  an address is a text
new Statecast(8000);
// @ts-expect-error  credentials are headers
new Statecast("wss://gateway/v1/stream", { credentials: () => "alice" });
// @ts-expect-error  the field of a watch is misspelt
live.watch({ store: "odds-by-match", group: "m1", limmit: 20 });
// @ts-expect-error  the client chooses ids
live.watch({ id: 1, store: "odds-by-match", group: "m1" });
// @ts-expect-error  the field of a row is misspelt
live.watch<contract.OddsV1Market>({ store: "odds-by-match" }, { onRows: ({ rows }) => rows.get("k1")?.row.suspendet });
// @ts-expect-error  rows are read, not written
board.rows.set("k1", { key: "k1", sort: "", row: {}, commitTime: null });
// @ts-expect-error  there is no such state
console.log(live.state === "closing");
