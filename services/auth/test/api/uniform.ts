// Responses and durations do not reveal which users exist.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { test } from "node:test";
import { ADMIN, call, expectStatus, join, signIn, startWithAdmin } from "../client.ts";
import { readLink, startMailbox } from "../mailbox.ts";
import { STAGE_KINDS, startStage } from "../stage.ts";

const LOGIN = "/api/v1/auth/login";
const ROUNDS = 5;
/** Expensive enough to dominate the work of a login. */
const PASSWORD_COST = { memoryCost: 19_456, timeCost: 12, parallelism: 1 };

test("unknown names, wrong passwords, disabled users and missing passwords take the same work", async () => {
  const stage = await startWithAdmin(await STAGE_KINDS[0]!.prepare(), {
    passwordCost: PASSWORD_COST,
  });
  const { token } = await signIn(stage, ADMIN);
  const ada = await join(stage, "ada");
  const off = await join(stage, "off");
  await expectStatus(200, stage, "PATCH", `/api/v1/users/${off.id}`, {
    token,
    body: { disabled: true },
  });
  await expectStatus(201, stage, "POST", "/api/v1/users", { token, body: { username: "keyed" } });
  const cases = {
    unknown: { username: "nobody", password: ada.password },
    wrong: { username: "ada", password: "something else" },
    disabled: { username: "off", password: off.password },
    keyed: { username: "keyed", password: "something else" },
  };
  const times = new Map(Object.keys(cases).map((name) => [name, [] as number[]]));
  for (let round = 0; round < ROUNDS; round += 1) {
    for (const [name, body] of Object.entries(cases)) {
      // Processor time of this process, in which the service runs: others on the machine add nothing.
      const start = process.cpuUsage();
      await expectStatus(401, stage, "POST", LOGIN, { body });
      const { user, system } = process.cpuUsage(start);
      times.get(name)!.push((user + system) / 1_000);
    }
  }
  // The minimum measures the work itself; garbage collection only adds to it.
  const least = Array.from(times.values(), (values) => Math.min(...values));
  const said = JSON.stringify(Object.fromEntries(times));
  assert.ok(Math.max(...least) < 2.5 * Math.min(...least), said);
  await stage.close();
});

test("a recovery responds before its email is sent, and equally for unknown addresses", async () => {
  const mailbox = await startMailbox();
  const held: (() => void)[] = [];
  let isHolding = false;
  const slow = createServer((request, response) => {
    request.resume();
    if (isHolding) {
      held.push(() => response.end("{}"));
      return;
    }
    const chunks: Buffer[] = [];
    request.on("data", (chunk: Buffer) => chunks.push(chunk));
    request.on("end", () => {
      mailbox.mails.push(JSON.parse(Buffer.concat(chunks).toString()) as never);
      response.end("{}");
    });
  }).listen(0, "127.0.0.1");
  await new Promise((resolve) => slow.once("listening", resolve));
  slow.unref().on("connection", (socket) => socket.unref());
  const stage = await startStage({
    ...(await STAGE_KINDS[0]!.prepare()),
    platform_notify_url: `http://127.0.0.1:${(slow.address() as AddressInfo).port}`,
  });
  const ada = await join(stage, "ada");
  await expectStatus(200, stage, "PATCH", "/api/v1/auth/account", {
    token: ada.token,
    body: { email: "ada@example.org" },
  });
  await expectStatus(202, stage, "POST", "/api/v1/auth/email/verify/begin", { token: ada.token });
  await expectStatus(200, stage, "POST", "/api/v1/auth/email/verify/finish", {
    body: { token: readLink(mailbox) },
  });
  isHolding = true;
  const answers = [];
  for (const email of ["ada@example.org", "nobody@example.org"]) {
    answers.push(
      await expectStatus(202, stage, "POST", "/api/v1/auth/recovery/begin", { body: { email } }),
    );
  }
  assert.deepEqual(answers[0]!.body, answers[1]!.body);
  const deadline = Date.now() + 20_000;
  while (held.length === 0) {
    assert.ok(Date.now() < deadline, "no mail was begun");
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  assert.equal(held.length, 1);
  for (const release of held) release();
  await stage.close();
  slow.close();
  mailbox.close();
});

test("mails belong to the trace of the request that sends them, also after its response", async () => {
  const mailbox = await startMailbox();
  const stage = await startStage({
    ...(await STAGE_KINDS[0]!.prepare()),
    platform_notify_url: mailbox.url,
  });
  const ada = await join(stage, "ada");
  await expectStatus(200, stage, "PATCH", "/api/v1/auth/account", {
    token: ada.token,
    body: { email: "ada@example.org" },
  });
  const traceId = "0af7651916cd43dd8448eb211c80319c";
  const headers = { traceparent: `00-${traceId}-b7ad6b7169203331-01`, tracestate: "vendor=a" };
  const { token } = ada;
  await expectStatus(202, stage, "POST", "/api/v1/auth/email/verify/begin", { token, headers });
  await expectStatus(200, stage, "POST", "/api/v1/auth/email/verify/finish", {
    body: { token: readLink(mailbox) },
  });
  const sent = mailbox.mails.length;
  const body = { email: "ada@example.org" };
  await expectStatus(202, stage, "POST", "/api/v1/auth/recovery/begin", { body, headers });
  await mailbox.waitFor(sent + 1);
  for (const received of [mailbox.headers[0]!, mailbox.headers.at(-1)!]) {
    const [, trace, span] = String(received["traceparent"]).split("-");
    assert.equal(trace, traceId);
    assert.notEqual(span, "b7ad6b7169203331", "the span is identity's");
    assert.equal(received["tracestate"], "vendor=a");
  }
  await expectStatus(202, stage, "POST", "/api/v1/auth/recovery/begin", { body });
  await mailbox.waitFor(sent + 2);
  assert.match(String(mailbox.headers.at(-1)!["traceparent"]), /^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/);
  await stage.close();
  mailbox.close();
});

test("registering with another user's verified address returns the same response", async () => {
  const mailbox = await startMailbox();
  const stage = await startStage({
    ...(await STAGE_KINDS[0]!.prepare()),
    platform_notify_url: mailbox.url,
  });
  const ada = await join(stage, "ada");
  const account = "/api/v1/auth/account";
  const verify = "/api/v1/auth/email/verify";
  const take = async (token: string) => {
    await expectStatus(200, stage, "PATCH", account, { token, body: { email: "ada@example.org" } });
    await expectStatus(202, stage, "POST", `${verify}/begin`, { token });
    return call(stage, "POST", `${verify}/finish`, { body: { token: readLink(mailbox) } });
  };
  assert.equal((await take(ada.token)).status, 200);
  const shapes = [];
  for (const [username, email] of [
    ["eve", "ada@example.org"],
    ["bob", "bob@example.org"],
  ] as const) {
    const { body } = await expectStatus(201, stage, "POST", "/api/v1/auth/register", {
      body: { username, email, password: "a fine long password" },
    });
    const { user } = body as never as { user: Record<string, unknown> };
    shapes.push([Object.keys(user), user["email_verified"]]);
  }
  assert.deepEqual(shapes[0], shapes[1]);
  // Only the owner of the mailbox learns that the address is taken.
  const eve = await signIn(stage, { username: "eve", password: "a fine long password" });
  assert.equal((await take(eve.token)).status, 409);
  await stage.close();
  mailbox.close();
});
