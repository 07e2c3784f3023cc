// Identity's codes by SMS through the mail service and its gateway.
import assert from "node:assert/strict";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { after, test } from "node:test";
import { expectStatus, join } from "../../services/auth/test/client.ts";
import { STAGE_KINDS, startStage as startAuth } from "../../services/auth/test/stage.ts";
import { startStage as startMail } from "../../services/notify/test/stage.ts";

const MFA = "/api/v1/auth/mfa";
const TOKEN = "operator-token";
const PHONE = "+4915112345678";

const texts: { to: string; text: string }[] = [];
const gateway = createServer((request, response) => {
  let body = "";
  request.setEncoding("utf8").on("data", (chunk: string) => (body += chunk));
  request.on("end", () => {
    texts.push(JSON.parse(body) as { to: string; text: string });
    response.writeHead(202, { "Content-Type": "application/json" }).end('{"id":"1"}');
  });
});
await new Promise<void>((resolve) => gateway.listen(0, "127.0.0.1", resolve));
const gatewayUrl = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
after(() => {
  gateway.closeAllConnections();
  gateway.close();
});

test("a code by SMS arrives through the gateway, works, and is erased from the mail service", async () => {
  const mail = await startMail({
    token: TOKEN,
    allow_private_targets: true,
    "sms.url": gatewayUrl,
    "smtp.host": "127.0.0.1",
    "smtp.port": 1,
  });
  const auth = await startAuth({
    ...(await STAGE_KINDS[0]!.prepare()),
    platform_notify_url: mail.url,
    notify_token: TOKEN,
  });
  const ada = await join(auth, "ada");
  const body = { type: "sms", phone: PHONE };
  const made = await expectStatus(200, auth, "POST", `${MFA}/setup`, { token: ada.token, body });
  assert.equal(texts.length, 1);
  assert.equal(texts[0]!.to, PHONE);
  const code = /\d{6}/.exec(texts[0]!.text)![0];
  const factor = (made.body as Record<string, string>)["id"];
  await expectStatus(200, auth, "POST", `${MFA}/verify`, {
    token: ada.token,
    body: { factor_id: factor, code },
  });
  const { expires_at: expiresAt, created_at: createdAt } = await mail.database.db
    .selectFrom("notify_messages")
    .select(["expires_at", "created_at"])
    .executeTakeFirstOrThrow();
  assert.ok(Math.abs(expiresAt! - createdAt - 600_000) < 10_000, "as long as the code is valid");
  const bodies = await mail.database.db.selectFrom("notify_bodies").selectAll().execute();
  assert.deepEqual(bodies, []);
  assert.ok([...mail.log, ...auth.log].every((line) => !line.includes(code)));
  await auth.close();
  await mail.close();
});

test("without a gateway identity answers 409", async () => {
  const mail = await startMail({ token: TOKEN, "smtp.host": "127.0.0.1", "smtp.port": 1 });
  const auth = await startAuth({
    ...(await STAGE_KINDS[0]!.prepare()),
    platform_notify_url: mail.url,
    notify_token: TOKEN,
  });
  const bob = await join(auth, "bob");
  const refused = await expectStatus(409, auth, "POST", `${MFA}/setup`, {
    token: bob.token,
    body: { type: "sms", phone: PHONE },
  });
  const problem = refused.body as Record<string, string>;
  assert.equal(problem["code"], "channel_unavailable");
  assert.match(problem["detail"]!, /no gateway for this channel/);
  await auth.close();
  await mail.close();
});
