/** Turns the reports of edges, whose counts only rise, into rates and into how fresh their frames are over time. */

const FORGOTTEN_MS = 30_000;

/** The edges that have answered lately, each with its last report and its rates a second. */
export class Edges {
  #known = new Map(); // by instance: { report, at, rates }

  /** Takes a report that came at `at`; returns how many changes of each age it adds, or null for a first report. */
  take(report, at) {
    const last = this.#known.get(report.instance);
    const goesOn = last !== undefined && report.uptime_s > last.report.uptime_s;
    const seconds = goesOn ? report.uptime_s - last.report.uptime_s : 0;
    const rates = goesOn ? ratesBetween(last.report.totals, report.totals, seconds) : null;
    this.#known.set(report.instance, { report, at, rates });
    for (const [instance, { at: seen }] of this.#known) if (at - seen > FORGOTTEN_MS) this.#known.delete(instance);
    return goesOn ? report.ages.counts.map((count, index) => count - last.report.ages.counts[index]) : null;
  }

  /** `[{report, rates}]` in the order of their names; `rates` is null after one report. */
  list() {
    return [...this.#known.values()].sort((one, other) => one.report.instance.localeCompare(other.report.instance));
  }
}

/** The ages of changes over the last minutes, summed up in slices of time. */
export class Freshness {
  #slices = new Map(); // by the number of the slice: counts
  #sliceMs;
  #most;
  bounds = [];

  constructor(sliceMs, most) {
    this.#sliceMs = sliceMs;
    this.#most = most;
  }

  /** Adds how many changes of each age came until `at`. */
  add(counts, bounds, at) {
    this.bounds = bounds;
    const number = Math.floor(at / this.#sliceMs);
    const held = this.#slices.get(number) ?? counts.map(() => 0);
    this.#slices.set(number, held.map((count, index) => count + counts[index]));
    for (const old of this.#slices.keys()) if (old <= number - this.#most) this.#slices.delete(old);
  }

  /** One point a slice, the oldest first: `{middle, slowest}` in seconds, or null where nothing changed. */
  points(now) {
    const newest = Math.floor(now / this.#sliceMs);
    return Array.from({ length: this.#most }, (_, index) => {
      const counts = this.#slices.get(newest - this.#most + 1 + index);
      const middle = counts && quantile(this.bounds, counts, 0.5);
      return middle ? { middle, slowest: quantile(this.bounds, counts, 0.99) } : null;
    });
  }
}

/** The value below which the share lies, read off a histogram; null when that is empty. */
export function quantile(bounds, counts, share) {
  const total = counts.reduce((sum, count) => sum + count, 0);
  if (total === 0) return null;
  let left = share * total;
  const index = counts.findIndex((count) => (left -= count) <= 0);
  if (index >= bounds.length) return bounds.at(-1);
  const lower = index > 0 ? bounds[index - 1] : 0;
  return lower + (bounds[index] - lower) * (1 + left / counts[index]);
}

function ratesBetween(before, after, seconds) {
  return Object.fromEntries(Object.entries(after).map(([name, total]) => [name, (total - before[name]) / seconds]));
}
