// Recipients that the mail service refuses: a clear error for their owners, and no hint for others.
import assert from "node:assert/strict";
import { after, test } from "node:test";
import { domainToASCII } from "node:url";
import { waitFor } from "@platform/testing/wait";
import { call, expectStatus, join } from "../../services/auth/test/client.ts";
import { STAGE_KINDS, startStage as startAuth } from "../../services/auth/test/stage.ts";
import { startSink } from "../../services/notify/test/sink.ts";
import { startStage as startMail } from "../../services/notify/test/stage.ts";

const API = "/api/v1/auth";
const TOKEN = "operator-token";
const GONE = "gone@example.org";

const sink = await startSink({
  reply: (step, to) => (step === "RCPT" && to === GONE ? "550 5.1.1 user unknown" : undefined),
});
const mail = await startMail({
  token: TOKEN,
  from_domain: "shop.example",
  "smtp.host": "127.0.0.1",
  "smtp.port": sink.port,
});
const auth = await startAuth({
  ...(await STAGE_KINDS[0]!.prepare()),
  platform_notify_url: mail.url,
  notify_token: TOKEN,
});
after(async () => {
  await auth.close();
  await mail.close();
  await sink.close();
});

function checkRefusal({ body }: { body: unknown }): void {
  const problem = body as Record<string, string>;
  assert.equal(problem["code"], "recipient_rejected");
  assert.match(problem["detail"]!, /does not accept messages/);
  assert.doesNotMatch(JSON.stringify(problem), /gone@|5\.1\.1|user unknown|suppress/);
}

test("an address that is refused, and from then on suppressed, is 422 for its owner", async () => {
  const username = "ada";
  const password = "ada has a long password";
  const account = { username, password, email: GONE };
  await expectStatus(201, auth, "POST", `${API}/register`, { body: account });
  await waitFor(async () => {
    const { status } = await mail.call("GET", `/api/v1/suppression/${GONE}`, undefined, {
      Authorization: `Bearer ${TOKEN}`,
    });
    return status === 200;
  });
  const { body } = await expectStatus(200, auth, "POST", `${API}/login`, {
    body: { username, password },
  });
  const token = (body as Record<string, string>)["access_token"]!;
  checkRefusal(
    await expectStatus(422, auth, "POST", `${API}/email/verify/begin`, { token, body: {} }),
  );
});

test("a factor with a refused or impossible address is 422", async () => {
  const { token } = await join(auth, "bob");
  const lookAlike = domainToASCII("ехаmple.org");
  for (const email of [GONE, `bob@${lookAlike}`]) {
    const body = { type: "email", email };
    checkRefusal(await expectStatus(422, auth, "POST", `${API}/mfa/setup`, { token, body }));
  }
});

test("recovery answers the same for refused, existing and unknown addresses", async () => {
  const answers = [];
  for (const email of [GONE, "nobody@example.org"]) {
    const { status, body } = await call(auth, "POST", `${API}/recovery/begin`, { body: { email } });
    answers.push(JSON.stringify({ status, body }));
  }
  assert.equal(answers[0], answers[1]);
  assert.match(answers[0]!, /"status":202/);
});
