/** Makes the elements of a picture. */

const SVG = "http://www.w3.org/2000/svg";

/** An element, for example `shape("line", { class: "grid", x1: 0, x2: 10 })`. */
export function shape(name, attributes) {
  const element = document.createElementNS(SVG, name);
  for (const [attribute, value] of Object.entries(attributes)) element.setAttribute(attribute, value);
  return element;
}

/** A text; `anchor` says which part of it is at `x`: start, middle or end. */
export function text(x, y, anchor, content) {
  const element = shape("text", { x, y, "text-anchor": anchor });
  element.textContent = content;
  return element;
}
