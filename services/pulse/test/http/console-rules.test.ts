// For the console: transforms that are tried, why publishing is refused, dead letters by cause beyond one request, all tenants.
import assert from "node:assert/strict";
import { test } from "node:test";
import { EventReader } from "../fixture/event-reader.ts";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { asUser, startFeed } from "../fixture/tokens.ts";
import { assemble, loop, shorten, trap } from "../fixture/transforms.ts";

type Headers = Record<string, string>;
type Body = NonNullable<NonNullable<Parameters<PulseHere["get"]>[1]>["body"]>;

const shortening = new Uint8Array(assemble(shorten));
const trapping = new Uint8Array(assemble(trap));
const send = (pulse: PulseHere, method: string, path: string, body?: Body, headers?: Headers) =>
  pulse.get(path, { method, ...(body === undefined ? {} : { body }), ...(headers && { headers }) });

test("a transform is tried on the latest messages, set, and deleted", async (t) => {
  const pulse = await startPulseHere(t);
  const path = "/api/v1/topics/orders/transform";
  const attempt = (body: Body, query = "") => send(pulse, "POST", `${path}/test${query}`, body);
  assert.equal((await attempt(shortening)).status, 404, "the topic does not exist");
  for (const payload of ["one", "two", "ü"]) await pulse.publish({ topic: "orders", payload });

  const tried = await attempt(shortening, "?messages=2");
  assert.equal(tried.status, 200, JSON.stringify(tried.body));
  assert.deepEqual(tried.body.messages, [
    {
      partition: 0,
      offset: 2,
      before: { payload: "ü", bytes: 2, is_text: true },
      after: { payload: "ww==", bytes: 1, is_text: false },
      error: null,
    },
    {
      partition: 0,
      offset: 1,
      before: { payload: "two", bytes: 3, is_text: true },
      after: { payload: "tw", bytes: 2, is_text: true },
      error: null,
    },
  ]);
  assert.equal((await send(pulse, "GET", path)).status, 404, "a trial sets nothing");
  const trapped = (await attempt(trapping)).body.messages as { after: null; error: string }[];
  assert.equal(trapped.length, 3);
  assert.match(trapped[0]!.error, /^transform failed: /);
  const endless = (await attempt(new Uint8Array(assemble(loop)), "?messages=1")).body.messages;
  assert.match(endless[0].error, /time-limit/);
  assert.equal((await attempt("no module")).status, 400);
  assert.equal((await attempt(shortening, "?messages=21")).status, 400);
  assert.equal((await attempt("")).status, 404, "an empty body is the topic's module");

  const put = await send(pulse, "PUT", path, shortening);
  assert.deepEqual([put.status, put.body.bytes], [200, shortening.length]);
  assert.equal((await send(pulse, "PUT", path, "")).status, 400);
  assert.equal((await attempt("", "?messages=1")).body.messages[0].after.bytes, 1);
  assert.equal((await send(pulse, "DELETE", path)).status, 204);
  assert.equal((await send(pulse, "GET", path)).status, 404);
  assert.equal((await send(pulse, "DELETE", "/api/v1/topics/none/transform")).status, 404);
});

test("rules and settings are changed only if they are still those that were read", async (t) => {
  const pulse = await startPulseHere(t);
  await pulse.publish({ topic: "orders", payload: "{}" });
  const topic = "/api/v1/topics/orders";
  const json = { "content-type": "application/json" };
  const none = { "if-none-match": "*" };
  const tagOf = async (path: string): Promise<Headers> => {
    const answer = await fetch(`${pulse.url}${path}`);
    assert.equal(answer.status, 200, await answer.text());
    return { "if-match": answer.headers.get("etag")! };
  };
  const configOf = async (): Promise<Headers> => ({
    "if-match": (await pulse.get(topic)).body.config_etag as string,
  });
  const status = async (...[method, path, body, headers]: Parameters<typeof sendTo>) =>
    (await sendTo(method, path, body, headers)).status;
  const sendTo = (method: string, path: string, body: Body | undefined, headers: Headers) =>
    send(pulse, method, path, body, { ...json, ...headers });

  const schema = `${topic}/schema`;
  assert.equal(await status("POST", schema, '{"id":"number"}', none), 200);
  assert.equal(await status("POST", schema, '{"id":"string"}', none), 412);
  const first = await tagOf(schema);
  assert.equal(await status("POST", schema, '{"id":"string"}', first), 200);
  assert.equal(await status("POST", schema, '{"id":"boolean"}', first), 412);
  assert.equal(await status("DELETE", schema, undefined, first), 412);
  assert.equal(await status("DELETE", schema, undefined, await tagOf(schema)), 204);

  const transform = `${topic}/transform`;
  assert.equal(await status("PUT", transform, shortening, none), 200);
  assert.equal(await status("PUT", transform, trapping, none), 412);
  const set = await tagOf(transform);
  assert.equal(await status("PUT", transform, trapping, set), 200);
  assert.equal(await status("DELETE", transform, undefined, set), 412);

  const retention = (hours: number) => JSON.stringify({ topic: "orders", retention_ms: hours });
  const read = await configOf();
  assert.equal(await status("POST", "/api/v1/topics/retention", retention(1_000), read), 200);
  assert.equal(await status("POST", "/api/v1/topics/retention", retention(2_000), read), 412);
  const letters = `${topic}/dlq`;
  assert.equal(await status("POST", letters, '{"dlq_topic":"dead"}', read), 412);
  assert.equal(await status("POST", letters, '{"dlq_topic":"dead"}', await configOf()), 200);
});

test("a trial requires the rights to manage and to read, in the own tenant", async (t) => {
  const { env } = await startFeed(t);
  const pulse = await startPulseHere(t, env);
  await pulse.post(
    "/api/v1/publish",
    { topic: "orders", payload: "secret" },
    asUser("publish", { tenant: "shop" }),
  );
  const attempt = (rights: string, tenant: string) =>
    send(
      pulse,
      "POST",
      "/api/v1/topics/orders/transform/test",
      shortening,
      asUser(rights, { tenant }),
    );
  assert.equal((await attempt("manage", "shop")).status, 403);
  assert.equal((await attempt("subscribe", "shop")).status, 403);
  assert.equal((await attempt("manage subscribe", "desk")).status, 404);
  assert.equal((await attempt("manage subscribe", "shop")).status, 200);
});

test("a topic shows why publishing is refused", async (t) => {
  const pulse = await startPulseHere(t, { PLATFORM_PULSE_BACKPRESSURE_LIMIT: "3" });
  const show = async () => {
    const { body } = await pulse.get("/api/v1/topics/a");
    return [body.queue_depth, body.queue_depth_max, body.queue_counts];
  };
  for (let at = 0; at < 3; at++) await pulse.publish({ topic: "a", payload: "x" });
  assert.equal((await pulse.publish({ topic: "a", payload: "x" })).status, 503);
  assert.deepEqual(await show(), [3, 3, "unread"]);
  const reader = await EventReader.open(`${pulse.url}/api/v1/subscribe/a?from=earliest&group=g`);
  await reader.wait(3);
  assert.equal((await show())[2], "groups");
  reader.close();
});

test("causes count the newest letters, and a cause behind 10 000 others is requeued with the cursor", async (t) => {
  const pulse = await startPulseHere(t, {
    PLATFORM_PULSE_BACKPRESSURE_LIMIT: "0",
    PLATFORM_PULSE_PUBLISH_RATE: "0",
  });
  await pulse.publish({ topic: "orders", payload: "x" });
  let made = 0;
  const bury = async (count: number, failure_reason: string) => {
    for (let done = 0; done < count; done += 1_000) {
      const messages = Array.from({ length: Math.min(1_000, count - done) }, () => {
        const letter = {
          message_id: `m${made++}`,
          source_topic: "orders",
          original_payload: "{}",
          failure_reason,
          timestamp: 1,
          retry_count: 0,
        };
        return { topic: "orders.dlq", payload: JSON.stringify(letter) };
      });
      const { status, body } = await pulse.post("/api/v1/publish/batch", { messages });
      assert.equal(status, 200, JSON.stringify(body));
    }
  };
  await bury(10_500, "early");
  await bury(3, "late");

  const { body } = await pulse.get("/api/v1/dlq/causes");
  assert.deepEqual([body.total, body.is_complete], [10_503, false]);
  assert.deepEqual(
    body.causes.map(({ reason, count }: { reason: string; count: number }) => [reason, count]),
    [
      ["early", 9_997],
      ["late", 3],
    ],
  );
  const requeue = (more: object) =>
    pulse.post("/api/v1/dlq/requeue", { topic: "orders", cause: "late", ...more });
  const first = await requeue({});
  assert.deepEqual([first.status, first.body.succeeded], [200, 0]);
  const second = await requeue({ cursor: first.body.next_cursor });
  assert.deepEqual(
    [second.body.succeeded, second.body.failed, second.body.next_cursor],
    [3, 0, null],
    JSON.stringify(second.body),
  );
  const last = await requeue({ cursor: first.body.next_cursor });
  assert.equal(last.status, 404);
  assert.equal((await requeue({ cursor: "x" })).status, 400);
});

test("administrators list the groups and the causes of all tenants; others only their own", async (t) => {
  const { env } = await startFeed(t);
  const pulse = await startPulseHere(t, env);
  for (const tenant of ["shop", "desk"]) {
    const user = asUser("publish subscribe manage", { tenant });
    const json = { ...user, "content-type": "application/json" };
    await send(pulse, "POST", "/api/v1/topics/orders/transform", trapping, user);
    await pulse.post("/api/v1/publish", { topic: "orders", payload: tenant }, user);
    await send(
      pulse,
      "POST",
      "/api/v1/offsets",
      JSON.stringify({ group: `${tenant}-workers`, topic: "orders", offset: 0 }),
      json,
    );
  }
  const admin = asUser("admin", { tenant: "desk" });
  const read = (path: string, headers: Headers) => pulse.get(path, { headers });
  const groups = (await read("/api/v1/consumers/lag?tenant=*", admin)).body.groups as {
    tenant: string;
    group: string;
  }[];
  assert.deepEqual(groups.map(({ tenant, group }) => `${tenant} ${group}`).sort(), [
    "desk desk-workers",
    "shop shop-workers",
  ]);
  const causes = (await read("/api/v1/dlq/causes?tenant=*", admin)).body.causes as {
    tenant: string;
    topic: string;
    count: number;
  }[];
  assert.deepEqual(causes.map(({ tenant, topic, count }) => `${tenant} ${topic} ${count}`).sort(), [
    "desk orders 1",
    "shop orders 1",
  ]);
  const user = asUser("subscribe", { tenant: "shop" });
  assert.equal((await read("/api/v1/consumers/lag?tenant=*", user)).status, 403);
  assert.equal((await read("/api/v1/dlq/causes?tenant=*", user)).status, 403);
  const own = (await read("/api/v1/dlq/causes", user)).body.causes as object[];
  assert.equal(own.length, 1);
  assert.equal("tenant" in own[0]!, false);
});
