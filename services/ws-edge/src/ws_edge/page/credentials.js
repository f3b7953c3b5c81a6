/** Who is signed in, and what is asked in their name. Credentials live in this tab alone, until it is closed. */

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

/** Calls the edge as the holder of the credentials; returns its JSON. Throws a StatecastError when it refuses them, and an Error when it fails. */
export async function call(credentials, path, options = {}) {
  const response = await fetch(path, { ...options, headers: headersOf(credentials), cache: "no-store" });
  if (response.ok) return response.json();
  const reason = await reasonOf(response);
  throw REFUSED.includes(response.status) ? new StatecastError("refused", reason) : new Error(reason);
}

/** The address of a socket for the holder of the credentials. It has a ticket: a browser's socket sends no headers. */
export async function socketAddress(credentials) {
  const { ticket } = await call(credentials, "/v1/tickets", { method: "POST" });
  const address = new URL("/v1/tickets/stream", location.href);
  address.protocol = location.protocol.replace("http", "ws");
  address.searchParams.set("ticket", ticket);
  return address.href;
}

function headersOf({ kind, value, name }) {
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
