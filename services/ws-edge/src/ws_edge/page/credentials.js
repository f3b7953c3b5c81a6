/** The credentials of who is signed in, and calls with them. They live in this tab alone, until it is closed. */

import { StatecastError } from "/statecast.js";

const PLACE = "statecast.credentials";
const REFUSED = [401, 403];

/** The credentials of this tab: `{kind: "key" | "password" | "token", …}`, or null. */
export function held() {
  return JSON.parse(sessionStorage.getItem(PLACE));
}

/** Keeps the credentials for this tab. */
export function keep(credentials) {
  sessionStorage.setItem(PLACE, JSON.stringify(credentials));
}

/** Signs out. */
export function forget() {
  sessionStorage.removeItem(PLACE);
}

/** Calls the edge with them; returns its JSON. Throws a StatecastError when they are refused, else an Error. */
export async function call(credentials, path, options = {}) {
  const response = await fetch(path, { ...options, headers: headersOf(credentials), cache: "no-store" });
  if (response.ok) return response.json();
  const reason = await reasonOf(response);
  throw REFUSED.includes(response.status) ? new StatecastError("refused", reason) : new Error(reason);
}

/** The HTTP headers that carry the credentials. */
export function headersOf({ kind, value, name }) {
  if (kind === "key") return { apikey: value };
  if (kind === "token") return { Authorization: `Bearer ${value}` };
  const bytes = new TextEncoder().encode(`${name}:${value}`);
  return { Authorization: `Basic ${btoa(String.fromCharCode(...bytes))}` };
}

async function reasonOf(response) {
  if (response.status === 401) return "These credentials are not accepted.";
  try {
    const body = await response.json();
    return body.error?.message ?? body.message ?? response.statusText;
  } catch {
    return `The server answered ${response.status} ${response.statusText}.`;
  }
}
