/** The pages of domains, as the edge lists them, and that of any store: the views of the page at `/`. */

import { make } from "/page/elements.js";
import { view as anyStore } from "/page/stores.js";

const RANK = 1;
const SHEET = "view-style";
const ANY_STORE = { ...anyStore, name: "stores", rank: 2, style: null };
const loaded = new Map(); // by the names of domains
const failed = new Map(); // by the names of domains: why

/**
 * Loads the pages that are new, and returns all views in the order of their ranks and labels, and why others failed.
 *
 * A domain's `page.js` exports `view`: its `label`; its `rank`, 1 by default, among the links; `isFor(consumer, stores)`,
 * whether it shows anything to somebody, by the stores that they may read; and `open(stage, ...parts)`, which shows it. Its
 * name in the address is the domain's, and the parts are those of the address after it.
 */
export async function loadViews() {
  const response = await fetch("/page/domains.json", { cache: "no-store" });
  const { pages } = await response.json();
  await Promise.all(pages.filter(({ domain }) => !loaded.has(domain) && !failed.has(domain)).map(load));
  const comesFirst = (one, other) => one.rank - other.rank || one.label.localeCompare(other.label);
  return { views: [...loaded.values(), ANY_STORE].sort(comesFirst), failed };
}

async function load({ domain, script, style }) {
  try {
    const { view } = await import(script);
    if (!view) throw new Error(`${script} exports no view.`);
    if (domain === ANY_STORE.name) throw new Error("That name is taken: call the directory of the domain otherwise.");
    loaded.set(domain, { rank: RANK, ...view, name: domain, style });
  } catch (error) {
    failed.set(domain, `The page of ${domain} cannot be loaded: ${error.message}`);
  }
}

/** Takes the sheet of a view in place of that of another one; resolves when it counts. */
export async function dress({ style }) {
  const [old, link] = [document.getElementById(SHEET), make("link", { rel: "stylesheet", id: SHEET })];
  if ((old?.getAttribute("href") ?? null) === style) return;
  old?.remove();
  if (!style) return;
  await new Promise((done) => {
    Object.assign(link, { onload: done, onerror: done });
    link.setAttribute("href", style);
    document.head.append(link);
  });
}
