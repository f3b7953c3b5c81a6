/** The views of the page, in the order of its navigation, and for whom each of them is. */

import { bookings } from "/page/bookings.js";
import { make } from "/page/elements.js";
import { holders } from "/page/holders.js";
import { odds } from "/page/odds.js";
import { orders } from "/page/orders.js";
import { shop } from "/page/shop.js";
import { stores as everyStore } from "/page/stores.js";

/**
 * A view: its `name` in the address, its `label`, whether it `isFor` a consumer and `runsOn` the stores that there are, and
 * `open(stage, ...parts)`, which shows it; the parts are those of the address after the name.
 */
const VIEWS = [orders, bookings, odds, holders, shop, everyStore];

/** The views that run and that the consumer may see. */
export function viewsFor(consumer, stores) {
  return VIEWS.filter((view) => view.isFor(consumer) && view.runsOn(stores));
}

/** The links of the navigation. */
export function linksOf(views, current, consumer) {
  const links = views.map((view) => {
    const link = make("a", { href: `#${view.name}` }, view.label);
    if (view === current) link.setAttribute("aria-current", "page");
    return link;
  });
  if (consumer.staff) links.push(make("a", { href: "/operator" }, "Operations"));
  return links;
}
