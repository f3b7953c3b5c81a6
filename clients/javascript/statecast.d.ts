import type { Page, Watch as WatchRequest } from "./contract.js";

export * as contract from "./contract.js";

/** What is watched: a range or a key of a store, a query in steps, or a channel. The client chooses ids and sends tokens. */
export type What = Omit<WatchRequest, "id" | "token" | "below">;

/** A row as it is now. `row` is a message of the contract as JSON, such as `contract.OddsV1Market`, or a document. */
export interface HeldRow<R = unknown> {
  key: string;
  sort: string;
  row: R;
  /** When it was committed at the source, with `times`. */
  commitTime: string | null;
}

/** A row that has changed; `row` is null when it is gone. */
export interface Change<R = unknown> extends Omit<HeldRow<R>, "row"> {
  row: R | null;
  /** How many versions were left out, because the program read too slowly. */
  skipped: number;
  /** Why the row cannot be shown. */
  error?: StatecastError;
}

/** What counts now of a place: the watch itself, or with steps or a channel the place that its `path` leads to. */
export interface News<R = unknown> {
  path: string[];
  rows: ReadonlyMap<string, HeldRow<R>>;
  changes: Change<R>[];
  /** The rows have replaced all that were there. */
  began: boolean;
  /** The place is no more. */
  ended: boolean;
}

/** The rows of a place with its token, for a later `watch`. */
export interface SavedPlace {
  path: string[];
  token: string;
  rows: HeldRow[];
}

export interface Handlers<R = unknown> {
  onRows?(news: News<R>): void;
  /** Everything has come for the first time. */
  onCurrent?(): void;
  /** For how many seconds the rows may be out of date, as the edge says; null when they are not any more. */
  onStale?(seconds: number | null): void;
  /** The watch has ended, and is not asked for again. */
  onEnd?(error: StatecastError): void;
  /** The result of `save()` of a watch of the same, or a page by REST of the same range. */
  saved?: SavedPlace[] | Page | null;
}

export declare class StatecastError extends Error {
  constructor(code: string | number, message: string, retryMs?: number | null);
  readonly code: string;
  readonly retryMs: number | null;
}

export declare class Places {
  constructor(saved?: SavedPlace[] | Page | null);
  rows(path?: string[]): ReadonlyMap<string, HeldRow>;
  token(path?: string[]): string;
  list(): { path: string[]; rows: ReadonlyMap<string, HeldRow>; token: string }[];
  save(): SavedPlace[];
}

export interface Watch<R = unknown> {
  readonly rows: ReadonlyMap<string, HeldRow<R>>;
  readonly token: string;
  readonly places: Places;
  /** Whether it went on from its token when it began last; null before. */
  readonly resumed: boolean | null;
  readonly isCurrent: boolean;
  /** For how many seconds the rows may be out of date; null while the edge sees and the line holds. */
  readonly stale: number | null;
  save(): SavedPlace[];
  end(): void;
}

export type State = "connecting" | "open" | "waiting" | "closed";
export type Need = "connect" | "expiring" | "expired";

export interface Options {
  /** Returns HTTP headers for a ticket; `until` is the end of access when the need is "expiring". */
  credentials?(need: Need, until: Date | null): Record<string, string> | Promise<Record<string, string>>;
  onState?(state: State): void;
  onError?(error: StatecastError): void;
  onWarning?(warning: StatecastError): void;
  WebSocket?: new (address: string, offers: string[]) => object;
}

export declare class Statecast {
  constructor(address: string, options?: Options);
  readonly state: State;
  readonly reason: StatecastError | null;
  watch<R = unknown>(what: What, handlers?: Handlers<R>): Watch<R>;
  call(method: string, path: string, body?: unknown): Promise<Record<string, unknown>>;
  wake(): void;
  close(): void;
}
