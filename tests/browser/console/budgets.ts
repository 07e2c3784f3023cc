// `node tests/browser/console/budgets.ts`: measures the budgets of the console in Chromium, on a machine without other load.
// Prints the median of five rounds of each figure beside its bound, and the load of the machine; exits with 1 if a bound is exceeded.
import { cpus, loadavg } from "node:os";
import { parseArgs } from "node:util";
import type { Browser, CDPSession, Page } from "playwright-core";
import { startChromium } from "@platform/kernel/testing";
import {
  startPulseProcess,
  type PulseProcess,
} from "../../../services/pulse/test/fixture/pulse-process.ts";

const HELP = `node tests/browser/console/budgets.ts [--rounds N] [--seconds N]

  --rounds N     rounds of each measurement (5)
  --seconds N    length of a round of a tail or of scrolling (10)
`;
const TOKEN = "operator-token";
const TOPIC = "orders";
const WIDTH = { width: 1440, height: 900 };
const ROWS = 10_000;
/** Batches a second in which messages are published. */
const BATCHES_HZ = 20;
/** Time until a tail at a steady rate has filled its ring and its code is warm. */
const WARM_UP_MS = 5_000;

let published = 0;

/** A figure of the rounds and its bound. */
interface Budget {
  name: string;
  unit: string;
  /** The bound, and whether the figure must stay below or above it. */
  bound: number;
  isMinimum?: boolean;
}

const BUDGETS = {
  interactive: { name: "interactive after", unit: "ms", bound: 1_000 },
  tableFps: { name: `${ROWS} rows, scrolled`, unit: "fps", bound: 58, isMinimum: true },
  tailFps: { name: "tail at 2 000/s", unit: "fps", bound: 50, isMinimum: true },
  tailThread: { name: "tail at 2 000/s, main thread", unit: "%", bound: 25 },
  tailReceived: { name: "tail at 2 000/s, received", unit: "/s", bound: 1_900, isMinimum: true },
  floodFreeze: { name: "tail at 20 000/s, longest frame", unit: "ms", bound: 200 },
  floodHeap: { name: "tail at 20 000/s, heap", unit: "MB", bound: 100 },
} as const satisfies Record<string, Budget>;
type Figure = keyof typeof BUDGETS;
type Figures = Partial<Record<Figure, number>>;

const { values } = parseArgs({
  options: {
    rounds: { type: "string", default: "5" },
    seconds: { type: "string", default: "10" },
    help: { type: "boolean", default: false },
  },
});
if (values.help) {
  process.stdout.write(HELP);
} else {
  process.exitCode = (await measure(Number(values.rounds), Number(values.seconds) * 1_000)) ? 0 : 1;
}

/** Measures everything; true if all budgets hold. */
async function measure(rounds: number, roundMs: number): Promise<boolean> {
  const ends: (() => unknown)[] = [];
  const stage = { after: (end: () => unknown) => void ends.push(end) };
  const browser = await startChromium("optimized");
  const found: Figures[] = [];
  const loadBefore = loadavg()[0]!;
  try {
    const pulse = await startPulseProcess(stage, {
      PLATFORM_PULSE_TOKEN: TOKEN,
      // A flooded tail leaves messages that nobody consumes; publishing of the next round would be refused.
      PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0",
    });
    await publish(pulse, 1);
    for (let round = 0; round < rounds; round += 1) {
      found.push({
        ...(await measureStart(browser, pulse)),
        ...(await measureTable(browser, pulse, roundMs)),
        ...(await measureTail(browser, pulse, roundMs)),
        ...(await measureFlood(browser, pulse, roundMs)),
      });
      process.stderr.write(`round ${round + 1} of ${rounds}\n`);
    }
  } finally {
    await browser.close();
    for (const end of ends.reverse()) await end();
  }
  process.stdout.write(
    `${browser.version()}, ${cpus().length} cores, load ${loadBefore.toFixed(1)} before and ${loadavg()[0]!.toFixed(1)} after\n`,
  );
  return (Object.keys(BUDGETS) as Figure[]).map((key) => report(key, found)).every(Boolean);
}

function report(key: Figure, rounds: readonly Figures[]): boolean {
  const { name, unit, bound, isMinimum = false }: Budget = BUDGETS[key];
  const sorted = rounds.flatMap((round) => round[key] ?? []).sort((a, b) => a - b);
  const median = sorted[Math.floor(sorted.length / 2)]!;
  const holds = isMinimum ? median >= bound : median <= bound;
  const range = `${sorted[0]!.toFixed(1)} … ${sorted.at(-1)!.toFixed(1)}`;
  const sign = isMinimum ? "≥" : "≤";
  process.stdout.write(
    `${holds ? "ok  " : "FAIL"} ${name.padEnd(36)} ${median.toFixed(1)} ${unit} (${range}), ${sign} ${bound}\n`,
  );
  return holds;
}

/** Opens a page of messaging in an empty cache, signed in. */
async function open(browser: Browser, pulse: PulseProcess, path: string): Promise<Page> {
  const context = await browser.newContext({ viewport: WIDTH, locale: "en-GB" });
  const { origin } = new URL(pulse.url);
  const answer = await context.request.post(`${origin}/console/login`, {
    data: { token: TOKEN },
    headers: { origin, "sec-fetch-site": "same-origin" },
  });
  if (!answer.ok()) throw new Error(`sign-in: ${answer.status()} ${await answer.text()}`);
  const page = await context.newPage();
  await page.goto(`${origin}/ui${path}`, { waitUntil: "commit" });
  return page;
}

/** Time from the navigation until the page of topics has its rows and the main thread is free. */
async function measureStart(browser: Browser, pulse: PulseProcess): Promise<Figures> {
  const page = await open(browser, pulse, "/messaging/topics");
  await page.locator("main tr[data-row]").first().waitFor();
  const interactive = Number(
    await page.evaluate(
      "new Promise((resolve) => requestIdleCallback(() => resolve(performance.now())))",
    ),
  );
  await page.context().close();
  return { interactive };
}

/** Frames while a table of 10 000 topics is scrolled by the wheel. The rows are made here: their number is what counts. */
async function measureTable(
  browser: Browser,
  pulse: PulseProcess,
  roundMs: number,
): Promise<Figures> {
  const page = await open(browser, pulse, "/messaging/groups");
  await page.route(/\/api\/v1\/consumers\/lag(?:\?|$)/, (route) => {
    const groups = Array.from({ length: ROWS }, (_, n) => ({
      group: `group-${String(n).padStart(5, "0")}`,
      topic: TOPIC,
      partition: 0,
      committed_offset: n,
      latest_offset: ROWS,
      lag: ROWS - n,
    }));
    return route.fulfill({ json: { groups } });
  });
  const rows = page.locator("main tr[data-row]");
  await page.reload();
  await rows.first().waitFor();
  await page.mouse.move(700, 500);
  const frames = await watchFrames(page);
  const endsMs = performance.now() + roundMs;
  while (performance.now() < endsMs) {
    await page.mouse.wheel(0, 240);
    await page.waitForTimeout(16);
  }
  const { fps } = await frames();
  await page.context().close();
  return { tableFps: fps };
}

/** A tail at 2 000 messages a second. */
async function measureTail(
  browser: Browser,
  pulse: PulseProcess,
  roundMs: number,
): Promise<Figures> {
  const { fps, thread, received } = await runTail(browser, pulse, 2_000, roundMs);
  return { tailFps: fps, tailThread: thread, tailReceived: received };
}

/** A tail at 20 000 messages a second. */
async function measureFlood(
  browser: Browser,
  pulse: PulseProcess,
  roundMs: number,
): Promise<Figures> {
  const { longest, heap } = await runTail(browser, pulse, 20_000, roundMs);
  return { floodFreeze: longest, floodHeap: heap };
}

async function runTail(browser: Browser, pulse: PulseProcess, rate: number, roundMs: number) {
  const page = await open(browser, pulse, `/messaging/topics/${TOPIC}/tail`);
  await page.getByRole("grid").waitFor();
  const session = await page.context().newCDPSession(page);
  await session.send("Performance.enable");
  const stop = startPublishing(pulse, rate);
  await page.waitForTimeout(WARM_UP_MS);
  const before = await readMetrics(session);
  const first = await readLastOffset(page);
  const frames = await watchFrames(page);
  await page.waitForTimeout(roundMs);
  const { fps, longest, seconds } = await frames();
  const after = await readMetrics(session);
  const last = await readLastOffset(page);
  await stop();
  await page.context().close();
  return {
    fps,
    longest,
    thread:
      (100 * (after.TaskDuration! - before.TaskDuration!)) / (after.Timestamp! - before.Timestamp!),
    received: (last - first) / seconds,
    heap: after.JSHeapUsedSize! / 1e6,
  };
}

/** Counts frames; the function that it returns ends the count. */
async function watchFrames(
  page: Page,
): Promise<() => Promise<{ fps: number; longest: number; seconds: number }>> {
  await page.evaluate(`globalThis.frames_ = { count: 0, longest: 0, began: performance.now(), last: performance.now() };
    globalThis.watch_ = () => {
      const now = performance.now();
      frames_.count += 1;
      frames_.longest = Math.max(frames_.longest, now - frames_.last);
      frames_.last = now;
      globalThis.handle_ = requestAnimationFrame(watch_);
    };
    globalThis.handle_ = requestAnimationFrame(watch_);`);
  return async () => {
    const text = await page.evaluate(
      "cancelAnimationFrame(handle_); JSON.stringify({ ...frames_, now: performance.now() })",
    );
    const { count, longest, began, now } = JSON.parse(String(text)) as Record<string, number>;
    const seconds = (now! - began!) / 1_000;
    return { fps: count! / seconds, longest: longest!, seconds };
  };
}

async function readMetrics(session: CDPSession): Promise<Record<string, number>> {
  const { metrics } = await session.send("Performance.getMetrics");
  return Object.fromEntries(metrics.map(({ name, value }) => [name, value]));
}

/** Offset of the newest row of the tail. */
async function readLastOffset(page: Page): Promise<number> {
  return Number(
    await page.evaluate(
      "Math.max(...[...document.querySelectorAll('.tail-row:not([hidden]) .tail-offset')].map((one) => Number(one.textContent)))",
    ),
  );
}

/** Publishes at a rate until the returned function is called. Batches that are late are not made up for. */
function startPublishing(pulse: PulseProcess, rate: number): () => Promise<void> {
  const end = new AbortController();
  const run = async (): Promise<void> => {
    let due = performance.now();
    while (!end.signal.aborted) {
      await publish(pulse, rate / BATCHES_HZ);
      due = Math.max(due + 1_000 / BATCHES_HZ, performance.now());
      await new Promise((resolve) => setTimeout(resolve, Math.max(0, due - performance.now())));
    }
  };
  const done = run();
  return async () => {
    end.abort();
    await done;
  };
}

async function publish(pulse: PulseProcess, count: number): Promise<void> {
  const messages = Array.from({ length: count }, () => {
    published += 1;
    const order = { order_id: published, ship_to: "AT", total_cents: 36_339, currency: "EUR" };
    return { topic: TOPIC, key: `cust-${published % 900}`, payload: JSON.stringify(order) };
  });
  const { status } = await pulse.post("/api/v1/publish/batch", { messages });
  // Under too much load messaging refuses: the figure of received messages shows it.
  if (status !== 200 && status !== 503) throw new Error(`publish: ${status}`);
}
