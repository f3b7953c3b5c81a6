/** Makes elements, and formats times and amounts for people. */

/** An element: `make("p", { className: "notice", onclick }, "text", child)`. Names with a dash become attributes. */
export function make(tag, properties = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(properties)) {
    if (name.includes("-") || name === "role" || name === "for") element.setAttribute(name, value);
    else element[name] = value;
  }
  element.append(...children);
  return element;
}

/** How long ago a moment was: "now", "12 s", "3 min", "5 h", "2 d". */
export function age(moment, now = Date.now()) {
  const seconds = Math.max(0, Math.floor((now - moment) / 1000));
  if (seconds < 1) return "now";
  if (seconds < 60) return `${seconds} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min`;
  return seconds < 86_400 ? `${Math.floor(seconds / 3600)} h` : `${Math.floor(seconds / 86_400)} d`;
}

/** A time span: "85 ms", "1.2 s", "3 min", "2 h". */
export function span(milliseconds) {
  if (milliseconds < 1000) return `${Math.round(milliseconds)} ms`;
  if (milliseconds < 10_000 && milliseconds % 1000) return `${(milliseconds / 1000).toFixed(1)} s`;
  if (milliseconds < 60_000) return `${Math.round(milliseconds / 1000)} s`;
  if (milliseconds < 3_600_000) return `${Math.round(milliseconds / 60_000)} min`;
  return `${Math.round(milliseconds / 3_600_000)} h`;
}

/** A number with the reader's separators; small rates keep a digit after the point. */
export function count(value) {
  return new Intl.NumberFormat(undefined, { maximumFractionDigits: value < 10 ? 1 : 0 }).format(value);
}

/** An amount in the smallest unit of its currency. */
export function money(cents, currency) {
  const form = currency ? { style: "currency", currency } : { minimumFractionDigits: 2 };
  return new Intl.NumberFormat(undefined, form).format(Number(cents) / 100);
}

/** Announces a text to screen readers. */
export function announce(text) {
  document.getElementById("announcer").textContent = text;
}

/** A moment as people say it, to the minute: "14:05" today, else "Thu 26 Nov, 14:05". */
export function day(moment, now = new Date()) {
  const time = { hour: "numeric", minute: "2-digit" };
  if (moment.toDateString() === now.toDateString()) return `Today, ${moment.toLocaleTimeString(undefined, time)}`;
  return moment.toLocaleString(undefined, { weekday: "short", day: "numeric", month: "short", ...time });
}

/** Lets the animation of a class begin anew. */
export function flash(element, name) {
  element.classList.remove(name);
  void element.offsetWidth; // so that the browser notices
  element.classList.add(name);
}

/** A titled part of a page. */
export function panel(title, text, ...content) {
  const head = [make("h2", {}, title), ...(text ? [make("p", {}, text)] : [])];
  return make("section", { className: "panel" }, ...head, ...content);
}

/** A table that can be scrolled sideways: the names of its columns, those with numbers, and its rows, a `tbody`. */
export function table(name, columns, numbers, rows) {
  const heads = columns.map((each) => make("th", { scope: "col", className: numbers.includes(each) ? "number" : "" }, each));
  const content = make("table", {}, make("thead", {}, make("tr", {}, ...heads)), rows);
  return make("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": name }, content);
}
