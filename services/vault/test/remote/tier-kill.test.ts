// kill -9 at each step of a move, a restore, a deletion and a copy, and a remote that dies at each step: afterwards every
// acknowledged version is byte-equal, and no key in the remote is without an owner or a task.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { LyingS3, type SeenRequest } from "@platform/testing/lying-s3";
import { waitFor } from "@platform/testing/wait";
import { callJson, readJson } from "../serving/json-api.ts";
import { serve, type Serving } from "../serving/serving.ts";
import { defer, makeBytes } from "../store/fixture.ts";

const BODY = makeBytes(1_500_000, 5);
const MEDIA = { "content-type": "application/json" };

interface Stage {
  serving: Serving;
  remote: LyingS3;
}

async function makeStage(context: TestContext): Promise<Stage> {
  const remote = await LyingS3.start();
  defer(context, () => remote[Symbol.asyncDispose]());
  const serving = await serve();
  defer(context, () => serving[Symbol.asyncDispose]());
  const { s3, admin } = serving;
  const body = JSON.stringify({
    name: "far",
    endpoint: remote.endpoint,
    access_key: "a",
    secret_key: "s",
  });
  await admin.must("POST", "/admin/remotes", { body, headers: MEDIA });
  await s3.must("PUT", "/bbb");
  const tier = JSON.stringify({ days: 0, remote: "far", bucket: "cold", minimum_size: 0 });
  await s3.must("PUT", "/bbb?cold-tier", { body: tier });
  return { serving, remote };
}

/** An operation, and the requests to the remote that are its steps. */
const OPERATIONS: Readonly<
  Record<string, { prepare: string[]; run: (stage: Stage) => Promise<unknown> }>
> = {
  "tier out": {
    prepare: ["put"],
    run: ({ serving: { s3 } }) => s3.send("POST", "/bbb?cold-tier&sweep"),
  },
  restore: {
    prepare: ["put", "sweep"],
    run: ({ serving: { s3 } }) =>
      s3.send("POST", "/bbb/a?restore", {
        body: "<RestoreRequest><Days>1</Days></RestoreRequest>",
      }),
  },
  delete: { prepare: ["put", "sweep"], run: ({ serving: { s3 } }) => s3.send("DELETE", "/bbb/a") },
  copy: {
    prepare: ["put", "sweep"],
    run: ({ serving: { s3 } }) =>
      s3.send("PUT", "/bbb/a", {
        headers: { "x-amz-copy-source": "/bbb/a", "x-amz-storage-class": "STANDARD" },
      }),
  },
};
/** The requests of an operation to the remote that are steps of the short form, by their number; VAULT_TIER_KILLS=all is the long one. */
const STEPS: Readonly<Record<string, readonly number[]>> =
  process.env["VAULT_TIER_KILLS"] === "all"
    ? { "tier out": [1, 2, 3], restore: [1, 2, 3], delete: [1, 2], copy: [1, 2, 3, 4] }
    : { "tier out": [1, 2], restore: [2], delete: [1], copy: [3] };

async function settle({ serving }: Stage): Promise<void> {
  await waitFor(async () => {
    const { kinds } = await readJson<{ kinds: { kind: string; waiting: number }[] }>(
      callJson(serving, "GET", "/admin/tasks"),
    );
    return kinds.every(({ kind, waiting }) => kind === "end-restore" || waiting === 0);
  }, "the end of all tasks");
}

async function requireRight(stage: Stage, name: string, what: string): Promise<void> {
  const { serving, remote } = stage;
  await settle(stage);
  const { s3 } = serving;
  const head = await s3.send("HEAD", "/bbb/a");
  const keys = remote.keys("cold").filter((key) => !key.endsWith("store.json"));
  if (head.status === 404) {
    assert.equal(name, "delete", what);
    assert.deepEqual(keys, [], `${what}: no key without an owner`);
    return;
  }
  const { body } = await s3.must("GET", "/bbb/a");
  assert.ok(body.equals(BODY), `${what}: the bytes are the same`);
  const isCold = head.headers["x-amz-storage-class"] === "COLD";
  assert.equal(keys.length, isCold ? 1 : 0, `${what}: ${keys.length} keys, cold ${isCold}`);
}

async function prepare({ serving: { s3 } }: Stage, steps: readonly string[]): Promise<void> {
  for (const step of steps) {
    if (step === "put") await s3.must("PUT", "/bbb/a", { body: BODY });
    else await s3.must("POST", "/bbb?cold-tier&sweep");
  }
}

for (const [name, { prepare: steps, run }] of Object.entries(OPERATIONS)) {
  test(`${name}: kill -9 at each request to the remote loses nothing`, async (context) => {
    const stage = await makeStage(context);
    const { serving, remote } = stage;
    for (const step of STEPS[name]!) {
      for (const isBefore of [true, false]) {
        await prepare(stage, steps);
        await settle(stage);
        let count = 0;
        let killing: Promise<void> | undefined;
        remote.judge = async ({ key }: SeenRequest) => {
          if (key.endsWith("store.json")) return undefined;
          count += 1;
          if (count !== step) return undefined;
          killing = serving.vault.kill();
          if (isBefore) await killing;
          return isBefore ? { kind: "refuse", status: 500, code: "InternalError" } : undefined;
        };
        await Promise.race([
          run(stage).catch(() => undefined),
          waitFor(() => killing !== undefined, "the kill", 3_000).catch(() => undefined),
        ]);
        await (killing ?? serving.vault.kill());
        remote.judge = () => undefined;
        await serving.vault.start();
        await requireRight(
          stage,
          name,
          `${name}, request ${step}, ${isBefore ? "before" : "after"}`,
        );
      }
    }
  });
}

test("a remote that dies at each step of each operation loses nothing", async (context) => {
  const stage = await makeStage(context);
  const { remote } = stage;
  for (const [name, { prepare: steps, run }] of Object.entries(OPERATIONS)) {
    for (const step of [1, 2, 3]) {
      await prepare(stage, steps);
      await settle(stage);
      let count = 0;
      let dead = 0;
      remote.judge = ({ key }) => {
        if (key.endsWith("store.json")) return undefined;
        count += 1;
        // Two requests are lost, the first one with its effect.
        if (count < step || dead >= 2) return undefined;
        dead += 1;
        return dead === 1 ? { kind: "drop" } : { kind: "refuse", status: 503, code: "SlowDown" };
      };
      await run(stage);
      remote.judge = () => undefined;
      await requireRight(stage, name, `${name}, dead at ${step}`);
    }
  }
});
