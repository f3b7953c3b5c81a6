/** Draws how fresh frames were as a small chart: time to the right, age upwards on a logarithmic scale. */

import { span } from "/page/elements.js";
import { shape, text } from "/page/svg.js";

const HEIGHT = 190;
const EDGE = { left: 52, right: 8, top: 10, bottom: 22 };
const LINES_S = [0.01, 0.1, 1, 10];
const LOWEST_S = 0.008;
const HIGHEST_S = 20;

/** Puts the points, `{middle, slowest}` in seconds or null, into the SVG element; `minutes` is what they span. */
export function draw(svg, points, minutes) {
  const width = Math.max(svg.clientWidth, 280);
  svg.setAttribute("viewBox", `0 0 ${width} ${HEIGHT}`);
  const right = width - EDGE.right;
  const across = (index) => EDGE.left + ((right - EDGE.left) * index) / (points.length - 1);
  const parts = LINES_S.flatMap((seconds) => [
    shape("line", { class: "grid", x1: EDGE.left, x2: right, y1: up(seconds), y2: up(seconds) }),
    text(EDGE.left - 8, up(seconds) + 4, "end", span(seconds * 1000)),
  ]);
  parts.push(text(EDGE.left, HEIGHT - 5, "start", `${minutes} min ago`), text(right, HEIGHT - 5, "end", "now"));
  for (const name of ["slowest", "middle"]) {
    parts.push(shape("path", { class: name, d: path(points, name, across) }), ...dots(points, name, across));
  }
  svg.replaceChildren(...parts);
}

function path(points, name, across) {
  let pen = "M";
  return points.reduce((drawn, point, index) => {
    if (point === null) {
      pen = "M";
      return drawn;
    }
    const step = `${pen}${across(index).toFixed(1)} ${up(point[name]).toFixed(1)}`;
    pen = "L";
    return drawn + step;
  }, "");
}

/** Points between two gaps, of which a line shows nothing. */
function dots(points, name, across) {
  const alone = (point, index) => point !== null && !points[index - 1] && !points[index + 1];
  return points.flatMap((point, index) =>
    alone(point, index) ? [shape("circle", { class: name, cx: across(index), cy: up(point[name]), r: 2.5 })] : [],
  );
}

function up(seconds) {
  const bounded = Math.min(Math.max(seconds, LOWEST_S), HIGHEST_S);
  const share = Math.log(bounded / LOWEST_S) / Math.log(HIGHEST_S / LOWEST_S);
  return HEIGHT - EDGE.bottom - share * (HEIGHT - EDGE.top - EDGE.bottom);
}
