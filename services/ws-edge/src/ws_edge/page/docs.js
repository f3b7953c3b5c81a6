/** The page of developers: the calls and the sockets, as /openapi.json and /asyncapi.json describe them. */

import { make } from "/page/elements.js";

const METHODS = ["get", "post", "put", "patch", "delete"];
const main = document.getElementById("main");

/** Text with its `code` set as such. */
function prose(text = "") {
  return text.split("`").map((part, place) => (place % 2 ? make("code", {}, part) : part));
}

/** The last part of a reference, which is the name of what it refers to. */
function nameOf(reference) {
  return decodeURIComponent(reference.slice(reference.lastIndexOf("/") + 1));
}

/** A link to the panel of a schema. */
function linkTo(reference) {
  const name = nameOf(reference);
  return make("a", { href: `#${name}` }, name.slice(name.lastIndexOf(".") + 1));
}

/** What a schema allows, in few words: the nodes of a phrase. */
function typeOf(schema = {}) {
  if (schema.$ref) return [linkTo(schema.$ref)];
  if (schema.allOf?.length === 1) return typeOf(schema.allOf[0]);
  const choices = schema.anyOf ?? schema.oneOf ?? schema.allOf;
  if (choices) return choices.flatMap((choice, place) => [place ? " or " : "", ...typeOf(choice)]);
  if ("const" in schema) return [make("code", {}, JSON.stringify(schema.const))];
  if (schema.enum) return [schema.enum.map((value) => JSON.stringify(value)).join(" or ")];
  if (schema.type === "array") return ["list of ", ...typeOf(schema.items)];
  const map = schema.additionalProperties;
  if (schema.type === "object" && map && map !== true) return ["map to ", ...typeOf(map)];
  return [[schema.type ?? "anything"].flat().join(" or "), schema.format ? ` (${schema.format})` : ""];
}

/** A table of named things; nothing when there are none. */
function fields(caption, rows) {
  if (!rows.length) return [];
  const head = make("tr", {}, ...["Name", "Type", "Meaning"].map((title) => make("th", { scope: "col" }, title)));
  const body = rows.map(({ name, type, required, text }) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, make("code", {}, name), required ? " (required)" : ""),
      make("td", {}, ...type),
      make("td", { className: "prose" }, ...prose(text)),
    ),
  );
  const table = make("table", {}, make("caption", {}, caption), make("thead", {}, head), make("tbody", {}, ...body));
  return [make("div", { className: "wide", tabIndex: 0, role: "region", "aria-label": caption }, table)];
}

/** The properties of an object's schema as rows of a table. */
function rowsOf({ properties = {}, required = [] } = {}) {
  return Object.entries(properties).map(([name, schema]) => ({
    name,
    type: typeOf(schema),
    required: required.includes(name),
    text: schema.description,
  }));
}

/** A panel that opens: a call, a socket or a schema. */
function entry(id, title, text, ...children) {
  const summary = make("summary", {}, make("code", {}, title));
  return make("details", { className: "entry", id }, summary, make("p", {}, ...prose(text)), ...children.flat());
}

function call(path, method, operation, shared = []) {
  const parameters = [...shared, ...(operation.parameters ?? [])].map((each) => ({
    name: each.name,
    type: [...typeOf(each.schema), `, in the ${each.in}`],
    required: each.required,
    text: each.description ?? each.schema?.description,
  }));
  const answers = Object.entries(operation.responses).map(([status, answer]) => ({
    name: status,
    type: Object.values(answer.content ?? {}).flatMap(({ schema }) => typeOf(schema)),
    text: answer.description,
  }));
  const body = Object.values(operation.requestBody?.content ?? {}).map(({ schema }) =>
    make("p", {}, "Body: ", ...typeOf(schema)),
  );
  const title = `${method.toUpperCase()} ${path}`;
  return entry(title, title, operation.description, fields("Parameters", parameters), body, fields("Answers", answers));
}

function calls(document) {
  return Object.entries(document.paths).flatMap(([path, item]) =>
    METHODS.filter((method) => method in item).map((method) => call(path, method, item[method], item.parameters)),
  );
}

function socket(document, name, channel) {
  const inAddress = Object.entries(channel.parameters ?? {}).map(([parameter, { description }]) => ({
    name: parameter,
    type: ["string, in the path"],
    required: true,
    text: description,
  }));
  const messages = Object.values(document.operations)
    .filter((operation) => nameOf(operation.channel.$ref) === name)
    .flatMap(({ messages: references }) => references.map(({ $ref }) => document.components.messages[nameOf($ref)]))
    .map((message) => ({ name: message.title, type: typeOf(message.payload), text: message.summary }));
  const ws = channel.bindings?.ws;
  const parameters = fields("Parameters", [...inAddress, ...rowsOf(ws?.query), ...rowsOf(ws?.headers)]);
  const text = `${channel.title}. ${channel.description}`;
  return entry(channel.address, channel.address, text, parameters, fields("Frames", messages));
}

function schemas(schemasByName) {
  return Object.entries(schemasByName).map(([name, schema]) => {
    const rows = rowsOf(schema);
    const plain = rows.length ? [] : [make("p", {}, ...typeOf(schema))];
    return entry(name, name, schema.description, plain, fields("Fields", rows));
  });
}

function section(title, entries) {
  return make("section", { className: "panel", "aria-label": title }, make("h2", {}, title), ...entries);
}

/** Opens the panel that the address names: it may have been made after the browser looked for it. */
function reveal() {
  const wanted = document.getElementById(decodeURIComponent(location.hash.slice(1)));
  if (wanted?.tagName !== "DETAILS") return;
  wanted.open = true;
  wanted.scrollIntoView();
}

async function show() {
  const read = async (place) => (await fetch(place)).json();
  const [ofCalls, ofSockets] = await Promise.all([read("/openapi.json"), read("/asyncapi.json")]);
  const sockets = Object.entries(ofSockets.channels).map(([name, channel]) => socket(ofSockets, name, channel));
  main.replaceChildren(
    make("div", { className: "title" }, make("h1", {}, "Interface"), make("p", {}, ...prose(ofCalls.info.description))),
    section("Calls", calls(ofCalls)),
    section("Sockets", sockets),
    section("Messages", schemas({ ...ofCalls.components.schemas, ...ofSockets.components.schemas })),
  );
  addEventListener("hashchange", reveal);
  reveal();
}

show().catch((error) => {
  main.replaceChildren(make("p", { className: "alert", role: "alert" }, `The documents cannot be read: ${error.message}`));
});
