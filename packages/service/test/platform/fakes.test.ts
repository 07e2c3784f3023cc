// Tests of a service with the platform in memory.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import {
  auth,
  database,
  every,
  HttpError,
  mail,
  messages,
  objects,
  route,
} from "@platform/service";
import { startTestService } from "@platform/service/testing";
import { checkContract } from "./contract.ts";

const jobs = database("jobs", {
  migrations: { "0001-done.sql": "create table done (id text primary key, tries integer)" },
});
let failures = 0;
const ended = new AbortController();
route("GET", "/me", (request) => auth.requireUser(request));
route("GET", "/scoped", { requires: "notes:read" }, ({ caller }) => caller.kind);
route("GET", "/fail", () => jobs.all`select * from missing`);
route("GET", "/upload", () => objects.uploadUrl("direct", { seconds: 60 }));
every("1h", { name: "report" }, async () => {
  await mail.send({ to: "ada@example.com", subject: "Report", text: "all is well" });
});

const app = await startTestService({ fakes: true });
after(async () => {
  ended.abort();
  await app.stop();
});

test("the contract of the platform holds for the fakes", () => checkContract("shop"));

test("users have sessions, and tokens for their scopes", async () => {
  const ada = app.as({ id: "u1", username: "ada", email: "ada@example.com" });
  assert.deepEqual(await (await ada.fetch("/me")).json(), {
    id: "u1",
    username: "ada",
    name: "ada",
    email: "ada@example.com",
    isEmailVerified: true,
  });
  assert.equal((await app.fetch("/me")).status, 401);
  assert.equal((await ada.fetch("/scoped")).status, 401);
  const status = async (scopes: string[]): Promise<number> =>
    (await app.as({ id: "u1", scopes }).fetch("/scoped")).status;
  assert.equal(await status(["notes:read"]), 200);
  assert.equal(await status(["notes:write"]), 403);
});

test("the clock runs schedules, and expires links and sessions", async () => {
  const before = app.mail.sent.length;
  const ada = app.as({ id: "u1" });
  const link = await (await app.fetch("/upload")).text();
  const put = async (): Promise<number> =>
    (await fetch(link, { method: "PUT", body: "direct" })).status;
  assert.equal(await put(), 200);
  assert.equal(app.objects.read("direct")?.toString(), "direct");
  assert.ok(app.objects.keys.includes("direct"));
  await app.clock.advance(3_600_000);
  assert.deepEqual(
    app.mail.sent.slice(before).map(({ to, subject }) => [to, subject]),
    [[["ada@example.com"], "Report"]],
  );
  assert.equal(await put(), 403);
  assert.equal((await ada.fetch("/me")).status, 401);
});

test("a delivered message is processed when it is acknowledged, also after a failure", async () => {
  await assert.rejects(app.messages.deliver("none", "x"), /has not subscribed to none/);
  const work = async (): Promise<void> => {
    const { signal } = ended;
    for await (const message of messages.subscribe("work", { group: "g", signal })) {
      if (message.retryCount === 0 && message.text() === "second") throw new HttpError(500, "no");
      await jobs.run`insert into done values (${message.text()}, ${message.retryCount})`;
    }
  };
  const loop = async (): Promise<void> => {
    while (!ended.signal.aborted) await work().catch(() => (failures += 1));
  };
  void loop().catch(assert.fail);
  while (!(await isSubscribed())) await new Promise(setImmediate);
  await app.messages.deliver("work", "second");
  await messages.publish("work", "late", { delayMs: 1_000 });
  await app.clock.advance(1_000);
  await app.messages.deliver("work", "last");
  assert.deepEqual(await app.databases["jobs"]!.all`select * from done`, [
    { id: "first", tries: 0 },
    { id: "second", tries: 1 },
    { id: "late", tries: 0 },
    { id: "last", tries: 0 },
  ]);
  assert.equal(failures, 1);
  assert.equal(app.messages.published.at(-1)!.text(), "last");
});

async function isSubscribed(): Promise<boolean> {
  return app.messages.deliver("work", "first").then(
    () => true,
    () => false,
  );
}

test("an error has its log with the lines of the file", async () => {
  assert.equal((await app.fetch("/fail")).status, 500);
  const { frame } = app.log.findLast(({ msg }) => msg === "request failed") as {
    frame: { message: string; lines: string[] };
  };
  assert.match(frame.message, /no such table: missing/);
  assert.ok(frame.lines.some((line) => line.startsWith("> ") && line.includes('"/fail"')));
});
