/** The rows of a watch, frame by frame: the rules of the page for client writers. */

import assert from "node:assert/strict";
import { test } from "node:test";
import { Places, StatecastError, Watch } from "../statecast.js";

const MARKETS = { message: "statecast.odds.v1.Market", key_field: "market_id", sort_field: "name", limit: 100 };
const market = (id, more = {}) => ({ market_id: id, name: `name of ${id}`, suspended: false, ...more });
const begun = (...ids) => ({ watching: MARKETS, rows: ids.map((id) => ({ row: market(id) })), token: "A", current: true });
const keys = (places, path) => [...places.rows(path).keys()];

/** Places that have taken the frames, and the last news. */
function taken(...frames) {
  const places = new Places();
  const news = frames.map((frame) => places.take(frame)).at(-1);
  return { places, news };
}

test("a whole row has its key and sort value in its own fields", () => {
  const { places, news } = taken(begun("m1", "m2"));

  assert.deepEqual(keys(places), ["m1", "m2"]);
  assert.equal(places.rows().get("m1").sort, "name of m1");
  assert.equal(places.token(), "A");
  assert.deepEqual([news[0].began, news[0].changes.length], [true, 2]);
});

test("the one row of a store with one row for each group has an empty key, and leaves", () => {
  const watching = { message: "statecast.orders.v1.Order", limit: 1 };
  const { places, news } = taken(
    { watching, rows: [{ row: { order_id: "o1" } }], token: "A" },
    { rows: [{ left: true }], token: "B" },
  );

  assert.deepEqual(keys(places), []);
  assert.deepEqual(news[0].changes, [{ key: "", sort: "", row: null, commitTime: null, skipped: 0 }]);
});

test("a delta changes its fields, and null removes one", () => {
  const { places } = taken(
    begun("m1"),
    { rows: [{ key: "m1", delta: { suspended: true, name: "other", note: 1 }, skipped: 2 }], token: "B" },
    { rows: [{ key: "m1", delta: { note: null } }], token: "C" },
  );

  assert.deepEqual(places.rows().get("m1").row, { market_id: "m1", name: "other", suspended: true });
  assert.equal(places.rows().get("m1").sort, "other");
});

test("a delta keeps a null that a document had", () => {
  const { places } = taken(
    { watching: { message: "json" }, rows: [{ key: "a", row: { n: null, m: 1 } }], token: "A" },
    { rows: [{ key: "a", delta: { m: 2, l: null } }], token: "B" },
  );

  assert.deepEqual(places.rows().get("a").row, { n: null, m: 2 });
});

test("a frame that fails changes nothing, and a map of rows stays as it is", () => {
  const { places } = taken(begun("m1", "m2"));
  const before = places.rows();
  assert.throws(() => places.take({ rows: [{ key: "m1", left: true }, { key: "m9", delta: {} }], token: "B" }));
  assert.deepEqual(keys(places), ["m1", "m2"]);

  places.take({ watching: { ...MARKETS, resumed: true }, rows: [{ key: "m1", left: true }], token: "C" });
  assert.deepEqual([[...before.keys()], keys(places)], [["m1", "m2"], ["m2"]]);
});

test("a delta of a row that is not there is an error", () => {
  assert.throws(() => taken(begun("m1"), { rows: [{ key: "m2", delta: {} }], token: "B" }), StatecastError);
});

test("rows count when the token comes, and are forgotten when the socket ends before", () => {
  const { places, news } = taken(begun("m1"), { rows: [{ row: market("m2") }] });

  assert.deepEqual([news, keys(places), places.token()], [[], ["m1"], "A"]);

  places.cut();
  places.take({ watching: { ...MARKETS, resumed: true }, token: "B" });
  assert.deepEqual([keys(places), places.token()], [["m1"], "B"]);
});

test("what begins without resuming replaces all rows at its token, and tells which are gone", () => {
  const { places } = taken(begun("m1", "m2"), { watching: MARKETS, rows: [{ row: market("m2") }] });

  assert.deepEqual(keys(places), ["m1", "m2"]);

  const [{ changes, began }] = places.take({ rows: [{ row: market("m3") }], token: "B" });
  const kept = changes.map(({ key, row }) => [key, row === null]);
  assert.deepEqual(keys(places), ["m2", "m3"]);
  assert.equal(began, true);
  assert.deepEqual(kept, [["m2", false], ["m3", false], ["m1", true]]);
});

test("a newer token does not count while rows wait, or while the rows are about to be replaced", () => {
  for (const frame of [{ rows: [{ row: market("m2") }] }, { watching: MARKETS }]) {
    const { places } = taken(begun("m1"), frame);
    places.bookmark({ token: "B" });

    assert.deepEqual([keys(places), places.token()], [["m1"], "A"]);
  }
});

test("a row that cannot be shown is dropped with its reason", () => {
  const error = { code: "row_too_large", message: "m1 is too large" };
  const { places, news } = taken(begun("m1"), { rows: [{ key: "m1", error }], token: "B" });

  assert.deepEqual(keys(places), []);
  assert.equal(news[0].changes[0].error.code, "row_too_large");
});

test("a row that leaves ends the places below at once, and those that come behind it stay", () => {
  const path = ["m1"];
  const { places } = taken(begun("m1"), { ...begun("a"), path });
  const ended = places.take({ rows: [{ key: "m1", left: true }, { row: market("m1") }] });
  places.take({ ...begun("b"), path });
  places.take({ rows: [], token: "L" });

  assert.deepEqual(ended.map((news) => [news.path, news.ended]), [[path, true]]);
  assert.deepEqual([keys(places), keys(places, path)], [["m1"], ["b"]]);
});

test("a place that begins anew ends those below that have no row, and keeps the others", () => {
  const { places } = taken(begun("m1", "m2"), { ...begun("a"), path: ["m1"] }, { ...begun("b"), path: ["m2"] });
  const news = places.take({ watching: MARKETS, rows: [{ row: market("m1") }], token: "O" });

  assert.deepEqual(news.map(({ path, ended }) => [path, ended]), [[["m2"], true], [[], false]]);
  assert.deepEqual(places.list().map(({ path }) => path), [[], ["m1"]]);
});

test("a place may end by itself, with those below", () => {
  const { places } = taken(begun("m1"), { ...begun("a"), path: ["m1"] }, { ...begun("c"), path: ["m1", "a"] });
  places.take({ path: ["m1"], ended: {} });

  assert.deepEqual(places.list().map(({ path }) => path), [[]]);
});

test("rows and tokens survive a restart of the program", () => {
  const { places } = taken(begun("m1"), { ...begun("a"), path: ["m1"], token: "B" });
  places.bookmark({ path: ["m1"], token: "C" });
  const again = new Places(JSON.parse(JSON.stringify(places.save())));

  assert.deepEqual(again.resumption(), { token: "A", below: [{ path: ["m1"], token: "C" }] });
  assert.deepEqual(keys(again, ["m1"]), ["a"]);

  again.take({ watching: { ...MARKETS, resumed: true }, rows: [{ key: "m1", delta: { suspended: true } }], token: "D" });
  assert.equal(again.rows().get("m1").row.suspended, true);
});

test("a page by REST resumes", () => {
  const rows = [
    { key: "m1", sort: "1", row: market("m1"), commit_time: "2026-11-28T10:00:00Z" },
    { key: "m2", error: { code: "row_too_large", message: "m2 is too large" } },
  ];
  const places = new Places({ rows, token: "A" });

  assert.deepEqual(places.resumption(), { token: "A" });
  assert.deepEqual([...places.rows().values()], [
    { key: "m1", sort: "1", row: market("m1"), commitTime: "2026-11-28T10:00:00Z" },
  ]);
});

test("a resumption has as many below as a frame holds", () => {
  const ids = Array.from({ length: 2000 }, (_, index) => `m${index}`);
  const { places } = taken(begun(...ids));
  for (const id of ids) places.take({ ...begun("a"), path: [id] });
  const watch = new Watch({ store: "odds-by-match", group: "g".repeat(600) }, { saved: places.save() });

  const size = JSON.stringify({ watch: [watch.request(1, 1000)] }).length;
  assert.ok(size > 900 && size <= 1000, String(size));
});
