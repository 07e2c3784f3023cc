// Answers to questions that are quiet for a while: the event stream goes on, and errors keep their status.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { setImmediate as turn } from "node:timers/promises";
import { S3Error } from "../../src/model/s3-error.ts";
import { awaitFirst, passEvents, QUIET_MS } from "../../src/s3/object/select-answer.ts";
import type { Answer } from "../../src/select/select-pool.ts";

/** An answer whose records come when the test says so. */
function createAnswer(): { answer: Answer; gates: PromiseWithResolvers<Buffer | undefined>[] } {
  const gates: PromiseWithResolvers<Buffer | undefined>[] = [];
  const answer: Answer = {
    stats: { scannedBytes: 7, processedBytes: 7, returnedBytes: 0 },
    next: () => {
      const gate = Promise.withResolvers<Buffer | undefined>();
      gates.push(gate);
      return gate.promise;
    },
    close: () => undefined,
  };
  return { answer, gates };
}

/** The type of an event, or the code of an error. */
const nameEvent = (message: Buffer): string =>
  /(?:event-type|error-code)[^]{3}(\w+)/.exec(message.toString("latin1"))![1]!;

function mockTime(t: TestContext): (ms: number) => Promise<void> {
  t.mock.timers.enable({ apis: ["setTimeout"] });
  return async (ms) => {
    t.mock.timers.tick(ms);
    await turn();
  };
}

test("the event stream says every five seconds that it goes on, with its progress on demand", async (t) => {
  const pass = mockTime(t);
  const { answer, gates } = createAnswer();
  const first = awaitFirst(answer, QUIET_MS);
  await pass(5_000);
  const events: string[] = [];
  const reading = (async () => {
    for await (const message of passEvents(answer, await first, true))
      events.push(nameEvent(message));
  })();
  await turn();
  assert.deepEqual(events, []);
  await pass(5_000);
  await pass(4_999);
  assert.deepEqual(events, ["Cont", "Progress"]);
  await pass(1);
  assert.deepEqual(events, ["Cont", "Progress", "Cont", "Progress"]);
  gates[0]!.resolve(Buffer.from("1\n"));
  await turn();
  assert.deepEqual(events.splice(0), [
    "Cont",
    "Progress",
    "Cont",
    "Progress",
    "Records",
    "Progress",
  ]);
  await pass(5_000);
  gates[1]!.reject(new S3Error("CastFailed"));
  await reading;
  assert.deepEqual(events, ["Cont", "Progress", "CastFailed"]);
});

test("an error that comes before the wait is over is that of the first records", async (t) => {
  const pass = mockTime(t);
  const { answer, gates } = createAnswer();
  let isOver = false;
  const first = awaitFirst(answer, 30_000).then((found) => {
    isOver = true;
    return found;
  });
  await pass(29_999);
  assert.equal(isOver, false);
  gates[0]!.reject(new S3Error("CastFailed"));
  await assert.rejects(async () => (await first).records, { code: "CastFailed" });
});
