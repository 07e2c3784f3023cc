// SQL over metadata: what each caller sees, what is refused, and limits.
import assert from "node:assert/strict";
import { after, before, test } from "node:test";
import { waitFor } from "@platform/testing/wait";
import { startPulseHere, type PulseHere } from "../fixture/pulse-here.ts";
import type { Answer } from "../fixture/running-pulse.ts";
import { asUser, startFeed } from "../fixture/tokens.ts";

let pulse: PulseHere;
const endings: (() => unknown)[] = [];
const ending = { after: (done: () => unknown) => void endings.push(done) };
before(async () => {
  const { env } = await startFeed(ending);
  pulse = await startPulseHere(ending, env);
  for (const tenant of ["main", "other"]) {
    const post = (path: string, body: unknown) => pulse.post(`${path}?tenant=${tenant}`, body);
    for (const topic of ["orders", "bills"]) {
      await post("/api/v1/topics", { name: `${topic}.${tenant}`, partitions: 2 });
      for (const key of ["a", "b", "c"]) {
        await post("/api/v1/publish", { topic: `${topic}.${tenant}`, key, payload: "{}" });
      }
    }
    await post("/api/v1/offsets", { group: "billing", topic: `orders.${tenant}`, offset: 1 });
    await post(`/api/v1/topics/bills.${tenant}/schema`, { total: "number" });
  }
  const rules = { rules: [{ topics: "orders.#", allow: ["subscribe"] }] };
  await pulse.get("/api/v1/access/roles/reader", {
    method: "PUT",
    headers: { "content-type": "application/json" },
    body: JSON.stringify(rules),
  });
});
after(async () => {
  for (const done of endings.toReversed()) await done();
});

const ask = (sql: string, headers = {}, params?: unknown, query = "") =>
  pulse.post(
    `/api/v1/sqlite/query${query}`,
    { sql, ...(params === undefined ? {} : { params }) },
    headers,
  );
const all = asUser("publish subscribe manage");

test("topics, partitions, offsets and groups of the caller's tenant", async () => {
  const topics = await ask(
    "select name, partitions, messages, has_schema from topics order by name",
    all,
  );
  assert.equal(topics.status, 200, JSON.stringify(topics.body));
  assert.deepEqual(topics.body.columns, [
    { name: "name" },
    { name: "partitions" },
    { name: "messages" },
    { name: "has_schema" },
  ]);
  assert.deepEqual(topics.body.rows, [
    ["bills.main", 2, 3, 1],
    ["orders.main", 2, 3, 0],
  ]);
  assert.equal(topics.body.truncated, false);
  const joined = await ask(
    "select sum(p.log_end - p.log_start), g.name, g.lag, g.topics, o.committed_offset from partitions p " +
      "join offsets o on o.topic = p.topic join groups g on g.name = o.group_name where p.topic = :topic group by g.name",
    all,
    { topic: "orders.main" },
  );
  assert.equal(joined.status, 200, JSON.stringify(joined.body));
  const [[messages, group, lag, count, offset]] = joined.body.rows;
  assert.deepEqual([messages, group, count, offset], [3, "billing", 1, 1]);
  assert.ok(lag >= 0);
  const schemas = await ask("select topic, kind from schemas where topic like ?", all, ["bills%"]);
  assert.deepEqual(schemas.body.rows, [["bills.main", "map"]]);
});

test("rows follow the caller's rights; only operators see rules and connections", async () => {
  const reader = asUser("", { roles: ["reader"], scope: "" });
  const topics = await ask("select name from topics", reader);
  assert.deepEqual(topics.body.rows, [["orders.main"]], JSON.stringify(topics.body));
  const counts = "select (select count(*) from rules), (select count(*) from subscriptions)";
  assert.deepEqual((await ask(counts, reader)).body.rows, [[0, 0]]);
  const denied = await ask("select tenant from topics", all);
  assert.equal(denied.status, 400);
  assert.equal((await ask("select 1", asUser("", { scope: "" }))).status, 403);
  assert.equal((await ask("select 1", all, undefined, "?tenant=*")).status, 403);
  const operator = await ask("select role, topics, allow from rules");
  assert.deepEqual(operator.body.rows, [["reader", "orders.#", "subscribe"]]);
  const tenants = await ask(
    "select tenant, count(*) from topics where tenant <> '' group by tenant order by tenant",
    {},
    undefined,
    "?tenant=*",
  );
  assert.deepEqual(tenants.body.rows, [
    ["main", 2],
    ["other", 2],
  ]);
});

test("connections of subscribers and causes of dead letters are listed", async () => {
  const letter = {
    message_id: "1",
    source_topic: "orders.main",
    original_payload: "{}",
    failure_reason: "late",
    timestamp: 1,
    retry_count: 0,
  };
  await pulse.post("/api/v1/publish?tenant=main", {
    topic: "orders.main.dlq",
    payload: JSON.stringify(letter),
  });
  const dead = await ask("select topic, total, cause, count, first_seen from dlq", all);
  assert.deepEqual(dead.body.rows, [["orders.main", 1, "late", 1, "1970-01-01T00:00:01.000Z"]]);
  const stop = new AbortController();
  const response = await fetch(`${pulse.url}/api/v1/subscribe/orders.main`, {
    headers: all,
    signal: stop.signal,
  });
  assert.equal(response.status, 200);
  const open = await ask("select topic, protocol, user from subscriptions", {}, [], "?tenant=main");
  assert.deepEqual(open.body.rows, [["orders.main", "http", "sub:u"]]);
  stop.abort();
});

test("nothing but one SELECT is answered, and limits end it", async () => {
  const refused = [
    "insert into topics (name) values ('x')",
    "delete from topics",
    "create table t (x)",
    "drop table topics",
    "pragma table_info(topics)",
    "select * from pragma_table_info('topics')",
    "attach 'x' as y",
    "vacuum into '/tmp/pulse-query-test'",
    "select 1; select 2",
    "select load_extension('x')",
    "select * from sqlite_master",
    "with recursive n(x) as (select 1 union all select x + 1 from n) select count(*) from n",
    "explain select 1",
    "begin",
    "select readfile('/etc/passwd')",
    "selec 1",
    "",
    "select * from nothing",
  ];
  for (const sql of refused) {
    const { status, body } = await ask(sql, all);
    assert.equal(status, 400, `${sql}: ${JSON.stringify(body)}`);
    assert.equal(body.code, "validation_failed", sql);
  }
  assert.equal((await ask("select count(*) from topics", all)).body.rows[0][0] > 0, true);
  const long = await ask(`select '${"x".repeat(65_536)}'`, all);
  assert.deepEqual([long.status, long.body.limit], [422, "statement"]);
  const big = await ask("select zeroblob(1000000000)", all);
  assert.deepEqual([big.status, big.body.limit], [422, "value"]);
  const cross = Array.from({ length: 24 }, (_, index) => `offsets o${index}, partitions p${index}`);
  const slow = await ask(`select count(*) from ${cross.join(", ")}`, all);
  assert.deepEqual([slow.status, slow.body.limit], [422, "time"]);
  const many = await ask(
    "select * from topics a, topics b, topics c, topics d, topics e, topics f, topics g, topics h, topics i, topics j",
    all,
  );
  assert.deepEqual([many.status, many.body.rows.length, many.body.truncated], [200, 1_000, true]);
  const numbers = await ask("select 9007199254740993, 9e999, x'00ff', 'é', null", all);
  assert.deepEqual(numbers.body.rows, [["9007199254740993", "Infinity", "AP8=", "é", null]]);
});

test("four queries wait, further ones are told to come back", async () => {
  const cross = Array.from({ length: 24 }, (_, index) => `partitions p${index}`).join(", ");
  const leave = new AbortController();
  const answers: Answer[] = [];
  const asked = Array.from({ length: 8 }, () =>
    pulse
      .get("/api/v1/sqlite/query", {
        method: "POST",
        headers: { "content-type": "application/json", ...all },
        body: JSON.stringify({ sql: `select count(*) from ${cross}` }),
        signal: leave.signal,
      })
      .then((answer) => answers.push(answer)),
  );
  await waitFor(() => answers.length >= 3, "three refusals");
  assert.deepEqual(
    answers.slice(0, 3).map(({ status, headers }) => [status, headers.has("retry-after")]),
    [
      [429, true],
      [429, true],
      [429, true],
    ],
  );
  leave.abort();
  await Promise.allSettled(asked);
  // Those that were left do not hold the next one up.
  assert.deepEqual((await ask("select 1 + 1", all)).body.rows, [[2]]);
});
