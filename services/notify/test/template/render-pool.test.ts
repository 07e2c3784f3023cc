// Threads that render: bounds, turns of the clients, threads that are stuck.
import assert from "node:assert/strict";
import { test, type TestContext } from "node:test";
import { RenderPool, type RenderPoolOptions } from "../../src/template/render-pool.ts";
import type { RenderJob } from "../../src/template/render-job.ts";

const BOUNDS = { threadsMax: 1, waitingMax: 4, waitingPerClientMax: 3, replyMs: 30_000 };
const ENDLESS =
  "{% for a in (1..3000) %}{% for b in (1..3000) %}{% assign c = b %}{% endfor %}{% endfor %}";

function start(t: TestContext, bounds: Partial<RenderPoolOptions> = {}): RenderPool {
  const pool = new RenderPool({ ...BOUNDS, ...bounds });
  t.after(() => pool.close());
  return pool;
}

function toJob(source: string, variables: Record<string, unknown> = {}): RenderJob {
  const partials = new Map();
  return { sources: { text: { id: source, source, partials } }, variables };
}

test("a job is rendered on a thread, with all parts and errors as on the event loop", async (t) => {
  const pool = start(t);
  const partials = new Map([["p", { id: "p@1", source: "<{{ x }}>" }]]);
  const html = { id: "h", source: "<b>{% render 'p', x: x %}</b>", partials };
  const { parts } = await pool.render("", { sources: { html }, variables: { x: "&" } });
  assert.deepEqual(parts, { html: "<b><&amp;></b>", text: "<&>" });
  await assert.rejects(pool.render("", toJob("{{ x | unknown }}")), {
    name: "PartError",
    part: "text",
    message: /unknown/,
  });
});

test("jobs above the bounds are refused, and clients are served in turn", async (t) => {
  const pool = start(t);
  const ended: string[] = [];
  const add = (client: string, name: string): Promise<void> =>
    pool
      .render(client, toJob("{{ n }}", { n: name }))
      .then(({ parts }) => void ended.push(parts.text!));
  const jobs = [add("ada", "a0"), add("ada", "a1"), add("ada", "a2"), add("ada", "a3")];
  await assert.rejects(add("ada", "a4"), { code: "overloaded" });
  jobs.push(add("bob", "b1"));
  await assert.rejects(add("carl", "c1"), { code: "overloaded" });
  await Promise.all(jobs);
  assert.deepEqual(ended, ["a0", "a1", "b1", "a2", "a3"]);
});

test("a thread that does not reply in time is replaced", async (t) => {
  const pool = start(t, { replyMs: 400 });
  await assert.rejects(pool.render("", toJob(ENDLESS)), { message: /limit of time/ });
  // A new thread may take long to start on a busy machine.
  for (let attempt = 0; ; attempt += 1) {
    const next = await pool.render("", toJob("next")).catch((error: Error) => error);
    if (!(next instanceof Error))
      return assert.deepEqual(next, { parts: { text: "next" }, warnings: [], paths: [] });
    assert.match(next.message, /limit of time/);
    assert.ok(attempt < 20);
  }
});

test("jobs fail when the pool is closed", async (t) => {
  const pool = start(t);
  const jobs = Promise.allSettled([pool.render("", toJob(ENDLESS)), pool.render("", toJob("b"))]);
  await pool.close();
  for (const { status } of await jobs) assert.equal(status, "rejected");
  await assert.rejects(pool.render("", toJob("c")), { code: "overloaded" });
});
