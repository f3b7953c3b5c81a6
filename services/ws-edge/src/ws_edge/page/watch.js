/** The page of any store: `?store=S&group=G` shows a group's rows live, `?store=S&key=K` the one row of a key. */

import { forget } from "/page/credentials.js";
import { announce, make } from "/page/elements.js";
import { Renewal } from "/page/renewal.js";
import { RowsTable } from "/page/rows-table.js";
import { showSession, signIn } from "/page/sign-in.js";
import { Stage } from "/page/stage.js";
import { Statecast } from "/statecast.js";

const MOST = 100;

const main = document.getElementById("main");
const wanted = new URLSearchParams(location.search);
const [store, group, key] = ["store", "group", "key"].map((name) => wanted.get(name) ?? "");

/** Shows the rows of the group, or the one of the key. */
function open(stage) {
  const rows = new RowsTable(store);
  const handlers = {
    show: (name, told, isNew) => {
      rows.show(name, told, isNew);
      announce(`${name} ${isNew ? "is there" : "has changed"}`);
    },
    drop: (name) => {
      rows.drop(name);
      announce(`${name} is gone`);
    },
  };
  stage.show({ title: group || key }, make("p", { className: "about" }, store), rows.element);
  stage.watch({ store, group: group || key, limit: MOST }, handlers);
}

async function begin(reason = "") {
  if (!store || !group === !key) {
    const text = "This page shows what its address names: ?store=STORE&group=GROUP, or ?store=STORE&key=KEY.";
    return main.replaceChildren(make("p", { className: "notice" }, text));
  }
  const { consumer } = await signIn(main, `See ${store} live`, reason);
  const showState = showSession(consumer);
  const renewal = new Renewal(consumer, main, () => showState("expired"));
  const live = new Statecast("/v1/stream", {
    credentials: (need, until) => renewal.headers(need, until),
    onState: showState,
    onWarning: (warning) => console.warn(warning.message),
    onError: (error) => {
      if (live.state !== "closed") return stage.alert(error.message);
      stage.end();
      forget();
      return begin(error.message);
    },
  });
  const place = make("div");
  main.replaceChildren(place);
  const stage = new Stage(place, live, consumer, new Map());
  open(stage);
}

begin();
