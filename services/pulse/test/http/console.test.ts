// Browsing, groups, dead letters by cause, schemas, administrators.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import { asUser, startFeed } from "../fixture/tokens.ts";
import { assemble, trap } from "../fixture/transforms.ts";

let pulse: PulseHere;
const endings: (() => unknown)[] = [];
const ending = { after: (done: () => unknown) => void endings.push(done) };
before(async () => {
  const { env } = await startFeed(ending);
  pulse = await startPulseHere(ending, env);
});
after(async () => {
  for (const done of endings.toReversed()) await done();
});

const publish = (topic: string, payload: unknown) =>
  pulse.publish({ topic, payload: JSON.stringify(payload) });
const setTransform = (topic: string, bytes: Uint8Array<ArrayBuffer>) =>
  pulse.get(`/api/v1/topics/${topic}/transform`, { method: "POST", body: bytes });

async function bury(topic: string, payloads: readonly unknown[]): Promise<void> {
  await setTransform(topic, new Uint8Array(assemble(trap)));
  for (const payload of payloads) assert.equal((await publish(topic, payload)).status, 200);
  await setTransform(topic, new Uint8Array(0));
}

test("messages are read from an offset or a time, by page and by filter", async () => {
  for (let at = 0; at < 5; at++) await publish("log", { at, word: at % 2 === 0 ? "Even" : "odd" });
  const read = (query: string) => pulse.get(`/api/v1/topics/log/messages?${query}`);
  const offsets = (answer: { body: { messages: { offset: number }[] } }) =>
    answer.body.messages.map(({ offset }) => offset);
  const page = await read("from=1&limit=2");
  assert.deepEqual([offsets(page), page.body.next], [[1, 2], 3]);
  assert.deepEqual([page.body.log_start, page.body.log_end], [0, 5]);
  const last = await read(`from=${page.body.next}&limit=2`);
  assert.deepEqual([offsets(last), last.body.next], [[3, 4], null]);
  assert.deepEqual(offsets(await read("filter=even")), [0, 2, 4]);
  assert.deepEqual(offsets(await read("from=1&until=3")), [1, 2]);
  const { body: third } = await pulse.get("/api/v1/topics/log/messages/0/3");
  assert.equal(third.payload, JSON.stringify({ at: 3, word: "odd" }));
  const time = encodeURIComponent(new Date(third.timestamp).toISOString());
  assert.ok(offsets(await read(`from=${time}`)).includes(3));
  assert.deepEqual(offsets(await read("from=2999-01-01T00:00:00Z")), []);
  assert.equal((await pulse.get("/api/v1/topics/log/messages/0/5")).status, 404);
  assert.equal((await read("partition=1")).status, 404);
  for (const query of ["limit=0", "limit=501", "from=yesterday", `filter=${"x".repeat(201)}`]) {
    assert.equal((await read(query)).status, 400, query);
  }
});

test("a page is bounded in bytes and continues", async () => {
  const payload = "x".repeat(900_000);
  for (let at = 0; at < 6; at++) {
    assert.equal((await pulse.publish({ topic: "heavy", payload })).status, 200);
  }
  const seen: number[] = [];
  let pages = 0;
  for (let from: number | null = 0; from !== null; pages++) {
    const { body } = await pulse.get(`/api/v1/topics/heavy/messages?from=${from}`);
    seen.push(...body.messages.map(({ offset }: { offset: number }) => offset));
    from = body.next;
  }
  assert.deepEqual(seen, [0, 1, 2, 3, 4, 5]);
  assert.ok(pages >= 2, `4 MiB do not hold all of them: ${pages}`);
});

test("a group is described, moved with a preview, and deleted", async () => {
  for (let at = 0; at < 4; at++) await publish("jobs", at);
  const commit = { group: "workers", topic: "jobs", offset: 3 };
  await pulse.post("/api/v1/offsets", commit);
  const describe = () => pulse.get("/api/v1/groups/workers");
  const { body } = await describe();
  assert.deepEqual(
    [body.state, body.members, body.offsets[0].committed_offset, body.offsets[0].lag],
    ["Empty", [], 3, 1],
  );
  const move = (to: unknown, dry = false) =>
    pulse.post("/api/v1/groups/workers", { topic: "jobs", to, dry_run: dry });
  const preview = await move("start", true);
  assert.deepEqual(preview.body.changes, [
    { partition: 0, from: 3, to: 0, replayed: 3, skipped: 0 },
  ]);
  assert.equal((await describe()).body.offsets[0].lag, 1, "a preview changes nothing");
  assert.equal((await move({ offset: 1 })).status, 200);
  assert.equal((await describe()).body.offsets[0].lag, 3);
  assert.equal((await move({ offset: 99 })).body.changes[0].to, 4);
  assert.equal((await move({ time: "2000-01-01T00:00:00Z" })).body.changes[0].to, 0);
  assert.equal((await move("middle")).status, 400);
  const remove = () => pulse.get("/api/v1/groups/workers", { method: "DELETE" });
  assert.equal((await remove()).status, 204);
  assert.equal((await describe()).status, 404);
  assert.equal((await remove()).status, 404);
});

test("dead letters of all topics are requeued by cause, with one patch that is tried first", async () => {
  await bury("orders", [{ price: "1" }, { price: "2" }, { price: null }]);
  await bury("mails", [{ to: "a" }]);
  const list = (query = "") => pulse.get(`/api/v1/dlq?${query}`);
  const all = (await list()).body.items as { topic: string; cause: string; message_id: string }[];
  assert.deepEqual(
    all.map(({ topic }) => topic),
    ["mails", "orders", "orders", "orders"],
  );
  const first = await list("limit=3");
  const second = await list(`limit=3&cursor=${first.body.next_cursor}`);
  assert.deepEqual([...first.body.items, ...second.body.items], all);
  const { cause } = all[0]!;
  const named = `cause=${encodeURIComponent(cause)}`;
  assert.equal((await list(`topic=orders&${named}`)).body.items.length, 3);
  assert.equal((await list("cause=other")).body.items.length, 0);

  const patch = [
    { op: "test", path: "/price", value: "1" },
    { op: "replace", path: "/price", value: 1 },
  ];
  const requeue = (body: object) => pulse.post("/api/v1/dlq/requeue", { topic: "orders", ...body });
  const tried = await requeue({ cause, patch, dry_run: true });
  assert.deepEqual([tried.body.succeeded, tried.body.failed], [1, 2]);
  assert.equal(tried.body.items[0].payload, JSON.stringify({ price: 1 }));
  assert.match(tried.body.items[1].error.detail, /Operation 1 of the patch: \/price differs/);
  assert.equal((await pulse.get("/api/v1/tail?topic=orders")).body.count, 0);

  const done = await requeue({ cause, patch });
  assert.deepEqual([done.body.succeeded, done.body.failed], [1, 2]);
  const { messages } = (await pulse.get("/api/v1/tail?topic=orders")).body;
  assert.deepEqual(
    messages.map(({ payload }: { payload: string }) => payload),
    [JSON.stringify({ price: 1 })],
  );
  assert.equal((await list("topic=orders")).body.items.length, 2);

  const drop = (body: object) =>
    pulse.get("/api/v1/dlq", {
      method: "DELETE",
      headers: { "content-type": "application/json" },
      body: JSON.stringify(body),
    });
  const dropped = await drop({ ids: all.slice(2).map(({ message_id }) => message_id) });
  assert.deepEqual([dropped.body.succeeded, dropped.body.failed], [2, 0]);
  await pulse.kill();
  await pulse.start();
  assert.deepEqual(
    (await list()).body.items.map(({ topic }: { topic: string }) => topic),
    ["mails"],
    "dropped letters stay away after a crash",
  );
  assert.equal((await drop({ cause: "other" })).status, 404);
  for (const body of [{}, { cause, ids: ["a"] }, { ids: [] }]) {
    assert.equal((await requeue(body)).status, 400);
  }
});

test("a schema is tried on the latest messages before it is set", async () => {
  await pulse.post("/api/v1/topics/typed/schema", { id: "number" });
  await publish("typed", { id: 1 });
  await publish("typed", { id: 2, name: "b" });
  const check = (schema: object) => pulse.post("/api/v1/topics/typed/schema/check", { schema });
  const { body } = await check({ id: "number", name: "string" });
  assert.equal(body.is_backward_compatible, false);
  assert.deepEqual(
    body.messages.map(({ offset, violations }: { offset: number; violations: object[] }) => [
      offset,
      violations.length,
    ]),
    [
      [1, 0],
      [0, 1],
    ],
  );
  assert.equal((await check({ id: "number" })).body.is_backward_compatible, true);
  assert.equal((await check({ id: "numbr" })).status, 400);
  const { schemas } = (await pulse.get("/api/v1/schemas")).body;
  assert.deepEqual(schemas, [{ topic: "typed", kind: "map", schema: { id: "number" } }]);
});

test("administrators act as the operator of any tenant; other users stay in theirs", async () => {
  const users = {
    everything: asUser("", { scope: "*:*", tenant: undefined }),
    scope: asUser("admin", { tenant: "desk" }),
  };
  const get = (path: string, headers: Record<string, string>) => pulse.get(path, { headers });
  await pulse.post(
    "/api/v1/publish",
    { topic: "t", payload: "1" },
    asUser("publish", { tenant: "shop" }),
  );
  for (const headers of Object.values(users)) {
    const shop = await get("/api/v1/topics?tenant=shop", headers);
    assert.deepEqual([shop.status, shop.body.count], [200, 1]);
    const every = await get("/api/v1/topics?tenant=*", headers);
    assert.ok(every.body.topics.some(({ tenant }: { tenant: string }) => tenant === "shop"));
    assert.equal((await get("/api/v1/access/roles", headers)).status, 200);
    assert.equal((await get("/api/v1/topics?tenant=no tenant!", headers)).status, 400);
  }
  assert.ok(
    (await get("/api/v1/topics", users.everything)).body.count > 3,
    "without a tenant: the operator's",
  );
  assert.equal(
    (await get("/api/v1/topics", users.scope)).body.count,
    0,
    "its own tenant by default",
  );
  const other = asUser("subscribe", { tenant: "desk", roles: ["admin"] });
  assert.equal((await get("/api/v1/topics?tenant=shop", other)).status, 403);
  assert.equal((await get("/api/v1/access/roles", other)).status, 403);
  const none = asUser("subscribe", { tenant: undefined });
  assert.equal((await get("/api/v1/topics", none)).status, 403);
});
