// The queue: fairness between clients and domains, priority of transactional mail, bounds, a stop in between.
import assert from "node:assert/strict";
import { after, describe, test } from "node:test";
import { setTimeout as sleep } from "node:timers/promises";
import { createManualClock } from "@platform/kernel/time";
import { waitFor } from "@platform/testing/wait";
import type { Delivery, QueueClass } from "../../src/delivery.ts";
import { Destinations } from "../../src/queue/destinations.ts";
import { Lanes } from "../../src/queue/lanes.ts";
import { planRetry } from "../../src/queue/retry.ts";
import { findRetryHint } from "../../src/relay/retry-hint.ts";
import { startSink } from "../sink.ts";
import { STAGE_KINDS, startStage, startStageOn } from "../stage.ts";

const OPEN: { close(): Promise<void> }[] = [];
after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

const DAY_MS = 86_400_000;
/** Batches of bulk mail, together more than the 1 000 deliveries that are held in memory. */
const BATCHES = 3;
const BATCH = 400;

function createDelivery(client: string, domain: string, queueClass: QueueClass = 0): Delivery {
  const message = { client, content: Buffer.alloc(10) } as Delivery["message"];
  return { message, domain, queueClass } as Delivery;
}

describe("lanes", () => {
  const options = { deliveriesMax: 100, laneDeliveriesMax: 50, bytesMax: 1_000 };

  test("clients and domains take turns", () => {
    const lanes = new Lanes(options);
    for (let index = 0; index < 10; index += 1) lanes.add(createDelivery("loud", "a.example"));
    lanes.add(createDelivery("quiet", "a.example"));
    lanes.add(createDelivery("loud", "b.example"));
    const order = Array.from({ length: 4 }, () => lanes.take(() => true)!);
    assert.deepEqual(
      order.map(({ message, domain }) => `${message.client} ${domain}`),
      ["loud a.example", "quiet a.example", "loud b.example", "loud a.example"],
    );
  });

  test("transactional mail goes first, and bulk and retries are not starved", () => {
    const lanes = new Lanes({ ...options, bytesMax: 10_000 });
    for (let index = 0; index < 40; index += 1) {
      lanes.add(createDelivery("a", "a.example", 0));
      lanes.add(createDelivery("a", "a.example", 1));
      lanes.add(createDelivery("a", "a.example", 2));
    }
    const classes = Array.from({ length: 16 }, () => lanes.take(() => true)!.queueClass);
    assert.deepEqual(classes.filter((one) => one === 1).length, 2);
    assert.deepEqual(classes.filter((one) => one === 2).length, 2);
    assert.equal(classes[0], 0);
  });

  test("number and size are bounded", () => {
    const lanes = new Lanes(options);
    for (let index = 0; index < 50; index += 1) lanes.add(createDelivery("a", "a.example"));
    assert.equal(lanes.laneRoom(0, "a", "a.example"), 0);
    assert.equal(lanes.laneRoom(0, "b", "a.example"), 50);
    for (let index = 0; index < 50; index += 1) lanes.add(createDelivery("b", "a.example"));
    assert.equal(lanes.room(0), 0);
    assert.equal(lanes.room(1), 0, "1 000 bytes are in memory");
    lanes.remove(({ message }) => message.client === "b");
    assert.equal(lanes.size, 50);
    assert.equal(lanes.room(1), 100);
  });

  test("a closed destination does not block the others", () => {
    const lanes = new Lanes(options);
    lanes.add(createDelivery("a", "closed.example"));
    lanes.add(createDelivery("a", "open.example"));
    const taken = lanes.take(({ domain }) => domain === "open.example");
    assert.equal(taken?.domain, "open.example");
    assert.equal(
      lanes.take(({ domain }) => domain === "open.example"),
      undefined,
    );
  });
});

describe("destinations", () => {
  test("failures pause a destination, longer each time, and a success ends it", () => {
    const clock = createManualClock();
    const destinations = new Destinations({ concurrencyMax: 2, ratePerSecond: 0, clock });
    const fail = (): void => {
      destinations.start("a");
      destinations.end("a", true);
    };
    fail();
    assert.ok(!destinations.isOpen("a"));
    assert.ok(destinations.isOpen("b"));
    assert.equal(destinations.nextOpeningMs(), 1_000);
    clock.advance(1_000);
    assert.ok(destinations.isOpen("a"));
    destinations.start("a");
    assert.ok(!destinations.isOpen("a"), "one attempt probes it");
    destinations.end("a", true);
    assert.equal(destinations.nextOpeningMs(), 2_000);
    clock.advance(2_000);
    destinations.start("a");
    destinations.end("a", false);
    assert.ok(destinations.isOpen("a"));
    for (let index = 0; index < 20; index += 1) {
      fail();
      clock.advance(60_000);
    }
    assert.ok(destinations.isOpen("a"), "at most a minute");
  });

  test("concurrency and rate are bounded", () => {
    const clock = createManualClock();
    const destinations = new Destinations({ concurrencyMax: 2, ratePerSecond: 10, clock });
    destinations.start("a");
    assert.ok(!destinations.isOpen("a"), "ten per second");
    clock.advance(100);
    destinations.start("a");
    clock.advance(100);
    assert.ok(!destinations.isOpen("a"), "two at once");
    destinations.end("a", false);
    assert.ok(destinations.isOpen("a"));
  });
});

test("retries are 5 min × 1.3ⁿ, 18 times, about 31 hours", () => {
  const plan = (attempts: number, hintMs?: number): number | undefined =>
    planRetry({ attempts, baseMs: 300_000, hintMs, random: 0.5 });
  assert.equal(plan(1), 300_000);
  assert.equal(plan(2), 390_000);
  assert.equal(plan(19), undefined);
  let totalMs = 0;
  for (let attempts = 1; attempts <= 18; attempts += 1) totalMs += plan(attempts)!;
  assert.equal(Math.round(totalMs / 3_600_000), 31);
  assert.equal(plan(1, 1_800_000), 1_800_000);
  assert.equal(plan(1, 1), 10_000, "hints are bounded");
  assert.equal(plan(1, 1e9), 21_600_000);
});

test("delays are found in the text of replies", () => {
  const cases: [text: string, ms: number | undefined][] = [
    ["Greylisted, please try again in 300 seconds", 300_000],
    ["4.7.1 Try again in 5 minutes", 300_000],
    ["retry after 1 hour", 3_600_000],
    ["Greylisting in effect, please come back in 00:04:59", undefined],
    ["mailbox full", undefined],
    ["message size 300 seconds", undefined],
  ];
  for (const [text, ms] of cases) assert.equal(findRetryHint(text), ms, text);
});

for (const { kind, skip, prepare } of STAGE_KINDS) {
  describe(`backlog on ${kind}`, { skip: skip ?? false }, () => {
    test("more than fits into memory is delivered once, and transactional mail overtakes it", async () => {
      // Slow until all messages are accepted, however long that takes.
      let contentMs = 300;
      const sink = await startSink({
        reply: async (step) => {
          if (step === "content") await sleep(contentMs);
          return undefined;
        },
      });
      const stage = await startStageOn({
        ...(await prepare()),
        "smtp.host": "127.0.0.1",
        "smtp.port": sink.port,
        from_domain: "shop.example",
        send_wait_ms: 0,
      });
      OPEN.push(sink, { close: () => stage.close(500) });
      for (let batch = 0; batch < BATCHES; batch += 1) {
        const messages = Array.from({ length: BATCH }, (_, index) => ({
          to: `user${batch * BATCH + index}@d${index % 13}.example`,
          subject: "Bulk",
          text: "Hello",
          stream: "bulk",
        }));
        const { body } = await stage.call("POST", "/api/v1/send/batch", { messages });
        assert.ok(body.results.every((one: { code: number }) => one.code === 202));
      }
      const before = sink.accepted.length;
      assert.ok(before < 800, "most of it waits");
      contentMs = 5;
      const mail = { to: "ada@example.org", subject: "Code", text: "123456" };
      await stage.call("POST", "/api/v1/send", mail);
      await waitFor(() => sink.accepted.find(({ recipient }) => recipient === "ada@example.org"));
      assert.ok(sink.accepted.length < before + 300, "it did not wait for the bulk mail");
      await waitFor(() => sink.accepted.length >= BATCHES * BATCH + 1);
      const recipients = new Set(sink.accepted.map(({ recipient }) => recipient));
      assert.equal(recipients.size, BATCHES * BATCH + 1);
      assert.equal(sink.accepted.length, BATCHES * BATCH + 1, "each exactly once");
    });

    test("a stop in between loses nothing, and the rest is sent after a start with an earlier clock", async () => {
      const sink = await startSink({
        reply: async (step) => {
          if (step === "content") await sleep(20);
          return undefined;
        },
      });
      OPEN.push(sink);
      const settings = {
        ...(await prepare()),
        "smtp.host": "127.0.0.1",
        "smtp.port": sink.port,
        from_domain: "shop.example",
        send_wait_ms: 0,
      };
      const first = await startStageOn(settings);
      first.setCalendar(DAY_MS);
      const scheduled = { to: "later@example.org", subject: "Later", text: "Hello" };
      const sendAt = new Date(Date.now() + 2 * DAY_MS).toISOString();
      await first.call("POST", "/api/v1/send", { ...scheduled, send_at: sendAt });
      const messages = Array.from({ length: 300 }, (_, index) => ({
        to: `user${index}@example.org`,
        subject: "Hello",
        text: "Hello",
      }));
      await first.call("POST", "/api/v1/send/batch", { messages });
      await first.close(5_000);
      const before = sink.accepted.length;
      assert.ok(before < 300, `${before}`);
      const second = await startStageOn(settings);
      OPEN.push({ close: () => second.close(500) });
      await waitFor(() => sink.accepted.length >= 300);
      assert.equal(new Set(sink.accepted.map(({ recipient }) => recipient)).size, 300);
      assert.equal(sink.accepted.length, 300, "a graceful stop repeats nothing");
    });
  });
}

test("a retry that was planned while the clock was ahead is not late by the jump", async () => {
  let isDown = true;
  const sink = await startSink({
    reply: (step) => (step === "RCPT" && isDown ? "450 4.2.0 later" : undefined),
  });
  OPEN.push(sink);
  const stage = await startStage({
    "smtp.host": "127.0.0.1",
    "smtp.port": sink.port,
    from_domain: "shop.example",
  });
  OPEN.push(stage);
  stage.setCalendar(DAY_MS);
  const mail = { to: "ada@example.org", subject: "Hello", text: "Hello" };
  const { body } = await stage.call("POST", "/api/v1/send", mail);
  const read = async (): Promise<string> =>
    (await stage.call("GET", `/api/v1/messages/${body.message_id}`)).text;
  await waitFor(async () => (await read()).includes("deferred"));
  isDown = false;
  stage.setCalendar(-DAY_MS);
  await waitFor(() => sink.accepted.length > 0);
});

for (const [direction, startsAtMs] of [
  ["back", DAY_MS],
  ["forward", -DAY_MS],
] as const) {
  test(`an attempt during which the clock is set ${direction} is not repeated`, async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    let isDown = true;
    const sink = await startSink({
      reply: async (step, argument) => {
        if (step === "RCPT" && argument.includes("late@") && isDown) return "450 4.2.0 later";
        if (step === "content" && argument.includes("Held")) await released;
        return undefined;
      },
    });
    OPEN.push(sink);
    const stage = await startStage({
      "smtp.host": "127.0.0.1",
      "smtp.port": sink.port,
      from_domain: "shop.example",
      send_wait_ms: 0,
    });
    OPEN.push(stage);
    const send = async (to: string, subject: string): Promise<void> => {
      await stage.call("POST", "/api/v1/send", { to, subject, text: "Hello" });
    };
    const countHeld = (): number => sink.arrived.filter(({ data }) => data.includes("Held")).length;
    stage.setCalendar(startsAtMs);
    await send("ada@example.org", "Held");
    await waitFor(() => countHeld() === 1);
    await send("late@example.org", "Late");
    await waitFor(() => stage.log.some((line) => line.includes('"deferred"')));
    isDown = false;
    stage.setCalendar(-startsAtMs);
    // The retry follows the clock in the same look at the queue.
    await waitFor(() => sink.accepted.find(({ recipient }) => recipient === "late@example.org"));
    await send("bob@example.org", "After it");
    await waitFor(() => sink.accepted.find(({ recipient }) => recipient === "bob@example.org"));
    assert.equal(countHeld(), 1);
    release();
    await waitFor(() => sink.accepted.find(({ recipient }) => recipient === "ada@example.org"));
    assert.equal(countHeld(), 1);
  });
}

test("a full queue refuses with 503 and Retry-After", async () => {
  const stage = await startStage({ queue_max: 2 });
  OPEN.push(stage);
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const mail = { to: "ada@example.org", subject: "Hello", text: "Hello", send_at: later };
  assert.equal((await stage.call("POST", "/api/v1/send", mail)).status, 202);
  assert.equal((await stage.call("POST", "/api/v1/send", mail)).status, 202);
  stage.advance(1_000);
  const full = await stage.call("POST", "/api/v1/send", mail);
  assert.equal(full.status, 503);
  assert.equal(full.body.code, "queue_full");
  assert.ok(full.headers.get("retry-after"));
});

test("an address that is suppressed while its mail waits gets no mail", async () => {
  const stage = await startStage({});
  OPEN.push(stage);
  const later = new Date(Date.now() + 3_600_000).toISOString();
  const mail = { to: "ada@example.org", subject: "Hello", text: "Hello", send_at: later };
  const { body } = await stage.call("POST", "/api/v1/send", mail);
  await stage.call("POST", "/api/v1/suppression", { email: "ada@example.org" });
  stage.advance(2 * 3_600_000);
  const status = await waitFor(async () => {
    await stage.refill();
    const found = await stage.call("GET", `/api/v1/messages/${body.message_id}`);
    return found.body.status === "queued" ? undefined : found.body.status;
  });
  assert.equal(status, "suppressed");
});
