/** Draws amounts over time as bars: one for each step, empty without an amount. */

import { shape, text } from "/page/svg.js";

const HEIGHT = 220;
const EDGE = { left: 58, right: 6, top: 12, bottom: 24 };
const LABEL_WIDTH = 52;
const MOST_LINES = 4;

/**
 * Puts bars, `{label, amount, title, isOpen, isNew}`, into the SVG element. `form` formats an amount. A bar is open
 * until its time is over, and new when its amount has just changed.
 */
export function drawBars(svg, bars, form) {
  const width = Math.max(svg.clientWidth, 280);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const step = stepOf(Math.max(1, ...bars.map(({ amount }) => amount)));
  const top = step * Math.max(1, Math.ceil(Math.max(...bars.map(({ amount }) => amount)) / step));
  const up = (amount) => HEIGHT - EDGE.bottom - (amount / top) * (HEIGHT - EDGE.top - EDGE.bottom);
  const parts = [];
  for (let amount = 0; amount <= top; amount += step) {
    const line = { class: "grid", x1: EDGE.left, x2: width - EDGE.right, y1: up(amount), y2: up(amount) };
    parts.push(shape("line", line), text(EDGE.left - 8, up(amount) + 4, "end", form(amount)));
  }
  const across = (width - EDGE.left - EDGE.right) / bars.length;
  const every = Math.ceil(LABEL_WIDTH / across);
  bars.forEach((bar, index) => {
    const x = EDGE.left + across * index;
    parts.push(...barOf(bar, x, across, up));
    const isLabelled = (bars.length - 1 - index) % every === 0;
    if (isLabelled) parts.push(text(x + across / 2, HEIGHT - 6, "middle", bar.label));
  });
  svg.replaceChildren(...parts);
}

function barOf({ amount, title, isOpen, isNew }, x, across, up) {
  const gap = Math.min(6, across * 0.2);
  const height = amount > 0 ? Math.max(2, up(0) - up(amount)) : 0;
  const kinds = ["amount", isOpen && "open", isNew && "changed"].filter(Boolean).join(" ");
  const place = { x: x + gap / 2, y: up(0) - height, width: Math.max(1, across - gap), height, rx: Math.min(3, height) };
  const bar = shape("rect", { class: kinds, ...place });
  const column = shape("rect", { class: "column", x, y: EDGE.top, width: across, height: HEIGHT - EDGE.top - EDGE.bottom });
  const name = shape("title", {});
  name.textContent = title;
  column.append(name);
  return [bar, column];
}

/** Returns the distance between lines: 1, 2 or 5 times a power of ten, for a few lines. */
function stepOf(highest) {
  const rough = highest / MOST_LINES;
  const power = 10 ** Math.floor(Math.log10(rough));
  return power * [1, 2, 5, 10].find((factor) => factor * power >= rough);
}
