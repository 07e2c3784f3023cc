// A week of one topic, moved sample by sample: a daily rhythm with noise is usual, and each planted fault is found in a minute.
import assert from "node:assert/strict";
import { test } from "node:test";
import { createRandom } from "@platform/testing/random";
import type { AnomalyKind } from "../../src/anomaly/anomaly-log.ts";
import { TopicAnomalies } from "../../src/anomaly/topic-anomalies.ts";

const SAMPLE_S = 10;
const DAY = 8_640;
/** Messages are looked at in each of so many samples. */
const LOOK_EVERY = Number(process.env["PLATFORM_ANOMALY_LOOK_EVERY"] ?? 60);
const SEED = Number(process.env["PLATFORM_ANOMALY_SEED"] ?? 20_261);

type Order = Record<string, unknown>;

class SimulatedTopic {
  readonly #random = createRandom(SEED);
  readonly anomalies: TopicAnomalies;
  sample = 0;
  #id = 0;

  constructor() {
    this.anomalies = new TopicAnomalies({ uuid: () => `anomaly ${this.#id++}` }, SAMPLE_S);
  }

  get nowMs(): number {
    return this.sample * SAMPLE_S * 1_000;
  }

  /** Messages of this sample: between 5 and 45 per second over a day, with the noise of independent arrivals. */
  rate(): number {
    const mean = SAMPLE_S * (25 + 20 * Math.sin((2 * Math.PI * this.sample) / DAY));
    const random = this.#random;
    const noise = Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return Math.max(0, Math.round(mean + Math.sqrt(mean) * noise)) / SAMPLE_S;
  }

  order(): Order {
    const random = this.#random;
    const isGift = random() < 0.3;
    return {
      id: Math.floor(random() * 1e9),
      customer: { name: "x".repeat(5 + Math.floor(random() * 20)), vip: random() < 0.1 },
      items: Array.from({ length: Math.floor(random() * 4) }, () => ({ sku: "a", price: 1.5 })),
      note: random() < 0.5 ? null : "a text",
      ...(isGift ? { gift: true } : {}),
      [`tag-${Math.floor(random() * 1e6)}`]: 1,
    };
  }

  /** One sample. */
  step(
    change: { rate?: (rate: number) => number; payload?: (order: Order) => string } = {},
    isLooked = this.sample % LOOK_EVERY === 0,
  ): void {
    const rate = this.rate();
    this.anomalies.observeRate(change.rate?.(rate) ?? rate, this.nowMs);
    if (isLooked) {
      const format = change.payload ?? JSON.stringify;
      const payloads = Array.from({ length: 20 }, () => Buffer.from(format(this.order())));
      this.anomalies.observePayloads(payloads, this.nowMs);
    }
    this.sample++;
  }

  active(): AnomalyKind[] {
    return [...this.anomalies.lasting()];
  }
}

const topic = new SimulatedTopic();

test(`a week of daily rhythm with noise has no anomaly (seed ${SEED})`, () => {
  for (let sample = 0; sample < 180; sample++) topic.step();
  assert.equal(topic.anomalies.describe().learning, false);
  for (let sample = 180; sample < 7 * DAY; sample++) topic.step();
  assert.deepEqual(topic.anomalies.describe().anomalies, []);
  const { paths, rate } = topic.anomalies.describe().baseline;
  assert.ok(paths <= 500 && rate > 5 && rate < 45, `${paths} paths, ${rate} messages per second`);
});

const change = (edit: (order: Order) => unknown) => ({
  payload: (order: Order) => {
    edit(order);
    return JSON.stringify(order);
  },
});
/** Faults of one in three messages, but for rates and sizes. */
let turn = 0;
const some = (edit: (order: Order) => unknown) =>
  change((order) => turn++ % 3 === 0 && edit(order));

const FAULTS: [
  name: string,
  kind: AnomalyKind,
  path: string | undefined,
  Parameters<SimulatedTopic["step"]>[0],
][] = [
  ["a burst", "rate_spike", undefined, { rate: (rate) => rate * 3 }],
  ["a publisher that is gone", "rate_drop", undefined, { rate: () => 0 }],
  [
    "large messages",
    "size_spike",
    undefined,
    change((order) => (order["note"] = "y".repeat(5_000))),
  ],
  ["a field that is gone", "field_missing", "id", some((order) => delete order["id"])],
  [
    "an object that is gone",
    "field_missing",
    "customer",
    some((order) => delete order["customer"]),
  ],
  ["a new field", "field_new", "coupon", some((order) => (order["coupon"] = { code: "x" }))],
  [
    "a number that became a text",
    "type_changed",
    "id",
    some((order) => (order["id"] = String(order["id"]))),
  ],
  [
    "text",
    "not_json",
    undefined,
    { payload: (order) => (turn++ % 3 === 0 ? "oops" : JSON.stringify(order)) },
  ],
];

for (const [name, kind, path, fault] of FAULTS) {
  test(`${name} is found within a minute, and ends when it does (seed ${SEED})`, () => {
    const before = topic.anomalies.describe().anomalies.length;
    const since = topic.nowMs;
    for (let sample = 0; sample < 6; sample++) topic.step(fault, true);
    const found = topic.anomalies.describe().anomalies.slice(0, -before || undefined);
    assert.deepEqual(
      found.map((anomaly) => [anomaly.kind, anomaly.path, anomaly.until]),
      [[kind, path, null]],
      JSON.stringify(found),
    );
    assert.ok(found[0]!.since >= since && found[0]!.since <= since + 60_000);
    for (let sample = 0; sample < 12; sample++) topic.step({}, true);
    assert.deepEqual(topic.active(), []);
  });
}

test("what lasts for an hour is usual from then on", () => {
  const fault = {
    rate: (rate: number) => rate * 3,
    ...change((order) => (order["id"] = String(order["id"]))),
  };
  for (let sample = 0; sample < 30; sample++) topic.step(fault, true);
  assert.deepEqual(topic.active().toSorted(), ["rate_spike", "type_changed"]);
  for (let sample = 0; sample < 370; sample++) topic.step(fault, true);
  assert.deepEqual(topic.active(), []);
});

test("what is stored continues, and a damaged value begins anew", () => {
  const ids = { uuid: () => "id" };
  const stored: unknown = JSON.parse(JSON.stringify(topic.anomalies.store()));
  assert.ok(JSON.stringify(stored).length < 64 * 1024);
  const again = new TopicAnomalies(ids, SAMPLE_S, stored);
  assert.deepEqual(again.describe(), topic.anomalies.describe());
  for (const damaged of [null, {}, { ...(stored as object), rate: ["x"] }]) {
    assert.equal(new TopicAnomalies(ids, SAMPLE_S, damaged).describe().learning, true);
  }
});
