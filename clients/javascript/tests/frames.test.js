/** The frames that all clients share, as data: those of an edge are taken, in the order in which they may come. */

import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { Places } from "../statecast.js";

const { edge } = JSON.parse(readFileSync(new URL("../../frames.json", import.meta.url), "utf8"));
const frames = Object.fromEntries(edge.map(({ shows, json }) => [shows, json]));
const BEGINS = "a watch begins with all rows";

/** Places that hold the first row, and its key. */
function begun() {
  const places = new Places();
  places.take(frames[BEGINS]);
  return { places, key: [...places.rows().keys()][0] };
}

test("a watch begins, and its row has the key and sort value of its fields", () => {
  const { places, key } = begun();
  const { row, sort } = places.rows().get(key);

  assert.deepEqual([key, sort, places.token()], [row.market_id, row.name, frames[BEGINS].token]);
});

for (const shows of ["a row changes", "a row changes, as a delta", "a watch resumes", "a field is gone"]) {
  test(`${shows}: the row is whole, but for what is gone`, () => {
    const { places, key } = begun();
    places.take(frames[shows]);

    const [{ delta = {}, row = {} } = {}] = frames[shows].rows ?? [];
    const now = places.rows().get(key)?.row ?? {};
    for (const [name, value] of Object.entries({ ...row, ...delta })) assert.deepEqual(now[name] ?? null, value);
    assert.equal(places.token(), frames[shows].token);
  });
}

test("a row that leaves or cannot be shown is dropped", () => {
  for (const shows of ["a row leaves", "a row cannot be shown"]) {
    const { places } = begun();
    const [{ changes }] = places.take(frames[shows]);
    assert.deepEqual(changes.map(({ row }) => row), [null], shows);
  }
});

test("rows without a token wait", () => {
  const { places } = begun();

  assert.deepEqual(places.take(frames["rows that count later"]), []);
});

test("a place below begins and ends", () => {
  const { places } = begun();
  const { path } = frames["a place below"];
  places.take(frames["a place below"]);
  assert.ok(places.rows(path).size > 0);

  places.take(frames["a place below ends"]);
  assert.equal(places.rows(path).size, 0);
});
