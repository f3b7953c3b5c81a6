/** The form to sign in, and the strip that says who is signed in and whether the page is live. */

import { call, forget, held, keep } from "/page/credentials.js";
import { make } from "/page/elements.js";

const KINDS = {
  key: { label: "API key", value: "API key" },
  password: { label: "Password", value: "Password" },
  token: { label: "Token", value: "Token (JWT)" },
};
const STATES = {
  connecting: "Connecting",
  open: "Live",
  waiting: "Reconnecting",
  expired: "Paused",
  closed: "Ended",
};

/** Resolves to `{credentials, consumer}` when somebody is signed in; `reason` is said above the form. */
export async function signIn(main, title, reason = "") {
  const credentials = held();
  if (credentials && !reason) {
    try {
      return { credentials, consumer: await call(credentials, "/v1/consumer") };
    } catch (error) {
      forget();
      return ask(main, title, error.message);
    }
  }
  return ask(main, title, reason);
}

/** Shows who is signed in; returns a function that shows the state of the connection. */
export function showSession(consumer) {
  const light = make("span", { className: "light", "data-state": "connecting" }, STATES.connecting);
  const leave = make("button", { type: "button", className: "quiet" }, "Sign out");
  leave.onclick = () => {
    forget();
    location.reload();
  };
  document.getElementById("session").replaceChildren(light, make("span", { className: "who" }, consumer.name), leave);
  return (state) => {
    light.dataset.state = state;
    light.textContent = STATES[state];
  };
}

function ask(main, title, reason) {
  const alert = make("p", { className: "alert", role: "alert", hidden: !reason }, reason);
  const name = field("Name", { name: "name", autocomplete: "username", required: true });
  const value = field("", { name: "value", type: "password", autocomplete: "current-password", required: true });
  const button = make("button", { className: "primary" }, "Sign in");
  const form = make("form", { className: "sign-in" }, kinds(name, value), name.row, value.row, alert, button);
  main.replaceChildren(make("section", { className: "door" }, make("h1", {}, title), form));
  choose("key", name, value);
  value.input.focus();
  return new Promise((done) => {
    form.onsubmit = async (event) => {
      event.preventDefault();
      button.disabled = true;
      const credentials = { kind: form.elements.kind.value, name: name.input.value, value: value.input.value.trim() };
      try {
        const consumer = await call(credentials, "/v1/consumer");
        keep(credentials);
        done({ credentials, consumer });
      } catch (error) {
        alert.textContent = error.message;
        alert.hidden = false;
        value.input.focus();
      } finally {
        button.disabled = false;
      }
    };
  });
}

/** A labelled input: `{input, text, row}`. */
export function field(label, properties) {
  const input = make("input", { id: `sign-in-${properties.name}`, ...properties });
  const text = make("label", { for: input.id }, label);
  return { input, text, row: make("div", { className: "field" }, text, input) };
}

function kinds(name, value) {
  const choices = Object.entries(KINDS).map(([kind, { label }]) => {
    const input = make("input", { type: "radio", name: "kind", value: kind, checked: kind === "key" });
    input.onchange = () => choose(kind, name, value);
    return make("label", {}, input, make("span", {}, label));
  });
  return make("fieldset", { className: "kinds" }, make("legend", { className: "unseen" }, "Sign in with"), ...choices);
}

function choose(kind, name, value) {
  name.row.hidden = name.input.disabled = kind !== "password";
  value.text.textContent = KINDS[kind].value;
}
