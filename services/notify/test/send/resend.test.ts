// Sending stored messages again, and reading their contents, on both databases.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { describe, test } from "node:test";
import { startRelayedStage } from "../relayed-stage.ts";
import { STAGE_KINDS, startStage, startStageOn, type Stage } from "../stage.ts";

const MAIL = {
  to: ["Ada <ada@example.org>"],
  cc: ["bob@example.org"],
  bcc: ["eve@example.org"],
  from: "shop@shop.example",
  subject: "Your order",
  text: "thank you",
  html: "<p>thank you</p>",
};

async function send(stage: Stage, mail: object, headers = {}): Promise<string> {
  const { status, body, text } = await stage.call("POST", "/api/v1/send", mail, headers);
  assert.equal(status, 200, text);
  return body.message_id;
}

for (const kind of STAGE_KINDS) {
  test(
    `${kind.kind}: a mail is sent again with an id of its own`,
    { skip: kind.skip },
    async () => {
      const stage = await startStageOn(await kind.prepare());
      const id = await send(stage, MAIL);
      const again = await stage.call("POST", `/api/v1/messages/${id}/resend`, {});
      assert.equal(again.status, 200, again.text);
      assert.equal(again.body.resent_from, id);
      const copyId = again.body.message_id;
      assert.notEqual(copyId, id);

      const copy = await stage.call("GET", `/api/v1/messages/${copyId}`);
      assert.equal(copy.body.resent_from, id);
      assert.deepEqual(
        copy.body.recipients.map(({ address, kind: field, status }: Record<string, string>) => [
          address,
          field,
          status,
        ]),
        [
          ["ada@example.org", "to", "sent"],
          ["bob@example.org", "cc", "sent"],
          ["eve@example.org", "bcc", "sent"],
        ],
      );
      const original = await stage.call("GET", `/api/v1/messages/${id}`);
      const event = original.body.events.find(({ type }: { type: string }) => type === "resent");
      assert.equal(event.detail, `as ${copyId} by the operator`);

      const [first, second] = [
        (await stage.call("GET", `/api/v1/messages/${id}/raw`)).text,
        (await stage.call("GET", `/api/v1/messages/${copyId}/raw`)).text,
      ];
      assert.match(second, new RegExp(`^Message-ID: <${copyId}@shop.example>\r$`, "m"));
      const rest = (text: string): string =>
        text.replaceAll(/^(?:Message-ID|Date|List-Unsubscribe): .*\r\n/gm, "");
      assert.equal(rest(second), rest(first));
      assert.doesNotMatch(second, /eve@/, "blind copies stay blind");

      const found = await stage.call("GET", "/api/v1/inbox?q=ORDER");
      assert.equal(found.body.messages.length, 2);
      assert.equal((await stage.call("GET", "/api/v1/inbox?q=%25")).body.messages.length, 0);
      assert.equal(
        (await stage.call("GET", "/api/v1/inbox?q=ada%40&limit=1")).body.messages.length,
        1,
      );
      await stage.close();
    },
  );
}

test("other recipients are in To, and others are dropped from the header", async () => {
  const stage = await startStage();
  const id = await send(stage, MAIL);
  const { body } = await stage.call("POST", `/api/v1/messages/${id}/resend`, {
    to: ["Zoë <zoe@example.org>", "ZOE@example.org"],
  });
  const { body: content } = await stage.call("GET", `/api/v1/messages/${body.message_id}/content`);
  const field = (name: string): string | undefined =>
    content.headers.find((one: { name: string }) => one.name === name)?.value;
  assert.match(field("to")!, /zoe@example\.org/);
  assert.equal(field("cc"), undefined);
  assert.equal(content.text.trim(), "thank you");
  for (const to of ["a@b@c", "x@example.org\r\nBcc: y@example.org", []]) {
    const refused = await stage.call("POST", `/api/v1/messages/${id}/resend`, { to });
    assert.equal(refused.status, 400, JSON.stringify(to));
  }
  const unknown = await stage.call("POST", `/api/v1/messages/${id}/resend`, {
    from: "x@y.example",
  });
  assert.equal(unknown.status, 400);
  await stage.close();
});

test("suppressed recipients are refused again", async () => {
  const stage = await startStage();
  const id = await send(stage, { ...MAIL, cc: [], bcc: [] });
  await stage.call("POST", "/api/v1/suppression", { email: "ada@example.org", reason: "manual" });
  const refused = await stage.call("POST", `/api/v1/messages/${id}/resend`, {});
  assert.equal(refused.status, 422);
  assert.equal(refused.body.code, "recipient_suppressed");
  await stage.close();
});

test("an Idempotency-Key sends one copy", async () => {
  const stage = await startStage();
  const [id, other] = [await send(stage, MAIL), await send(stage, MAIL)];
  const key = { "Idempotency-Key": "again-1" };
  const path = `/api/v1/messages/${id}/resend`;
  const answers = await Promise.all([1, 2, 3].map(() => stage.call("POST", path, {}, key)));
  assert.equal(new Set(answers.map(({ body }) => body.message_id)).size, 1);
  const clash = await stage.call("POST", `/api/v1/messages/${other}/resend`, {}, key);
  assert.equal(clash.status, 409);
  assert.equal((await stage.call("GET", "/api/v1/messages")).body.messages.length, 3);
  await stage.close();
});

test("contents that are sensitive, erased, expired or personal are refused with 409", async () => {
  const stage = await startStage({ body_retention_ms: 3_600_000 });
  const reasonOf = async (path: string, body?: object): Promise<string> => {
    const answer = await stage.call(body === undefined ? "GET" : "POST", path, body);
    assert.equal(answer.status, 409, `${path}: ${answer.text}`);
    assert.doesNotMatch(answer.text, /thank you/);
    return answer.body.reason;
  };
  const secret = await send(stage, { ...MAIL, sensitive: true });
  for (const part of ["checks", "content", "raw", "html"]) {
    assert.equal(await reasonOf(`/api/v1/messages/${secret}/${part}`), "sensitive", part);
  }
  assert.equal(await reasonOf(`/api/v1/messages/${secret}/resend`, {}), "sensitive");
  const bulk = await send(stage, { ...MAIL, cc: [], bcc: [], stream: "bulk" });
  assert.equal(
    await reasonOf(`/api/v1/messages/${bulk}/resend`, { to: "zoe@example.org" }),
    "personal_links",
  );
  const same = await stage.call("POST", `/api/v1/messages/${bulk}/resend`, {
    to: "ADA@example.org",
  });
  assert.equal(same.status, 200, same.text);
  const code = await send(stage, {
    ...MAIL,
    expires_at: new Date(Date.now() + 600_000).toISOString(),
  });
  const later = await send(stage, { ...MAIL, to: "x@example.org" });
  const scheduled = await stage.call("POST", "/api/v1/send", {
    ...MAIL,
    send_at: new Date(Date.now() + 86_400_000).toISOString(),
  });
  assert.equal(
    await reasonOf(`/api/v1/messages/${scheduled.body.message_id}/resend`, {}),
    "in_queue",
  );
  stage.advance(700_000);
  assert.equal(await reasonOf(`/api/v1/messages/${code}/resend`, {}), "expired");
  stage.advance(3_600_000);
  await stage.database.db.deleteFrom("notify_bodies").where("message_id", "=", later).execute();
  assert.equal(await reasonOf(`/api/v1/messages/${later}/resend`, {}), "erased");
  const missing = await stage.call("POST", "/api/v1/messages/none/resend", {});
  assert.equal(missing.status, 404);
  await stage.close();
});

test("a copy reaches the relay", async () => {
  const { stage, sink } = await startRelayedStage({});
  const id = await send(stage, { ...MAIL, cc: [], bcc: [] });
  const again = await stage.call("POST", `/api/v1/messages/${id}/resend`, {});
  assert.equal(again.status, 200, again.text);
  assert.equal(sink.accepted.length, 2);
  assert.match(sink.accepted[1]!.data, new RegExp(again.body.message_id));
  await stage.close();
});

describe("clients", () => {
  const SECRET = "0123456789abcdef0123456789abcdef";
  const bearer = (sub: string, scope = "notify:send"): Record<string, string> => {
    const encode = (value: object): string =>
      Buffer.from(JSON.stringify(value)).toString("base64url");
    const claims = { sub, scope, exp: Math.floor(Date.now() / 1000) + 600 };
    const text = `${encode({ alg: "HS256", typ: "at+jwt" })}.${encode(claims)}`;
    const signature = createHmac("sha256", SECRET).update(text).digest("base64url");
    return { authorization: `Bearer ${text}.${signature}` };
  };

  test("see and repeat their own messages only, within their rate", async () => {
    const stage = await startStage({
      token: "operator-token",
      jwt_secret: SECRET,
      from_domain: "shop.example",
      send_rate_per_minute: 60,
      send_burst: 3,
    });
    const shop = bearer("shop");
    const id = await send(stage, MAIL, shop);
    const path = `/api/v1/messages/${id}`;
    for (const part of ["checks", "content", "raw", "html"]) {
      const own = await stage.call("GET", `${path}/${part}`, undefined, shop);
      assert.equal(own.status, 200, own.text);
      const other = await stage.call("GET", `${path}/${part}`, undefined, bearer("other"));
      assert.equal(other.status, 404, part);
      const foreign = await stage.call("GET", `${path}/${part}`, undefined, bearer("x", "openid"));
      assert.equal(foreign.status, 403, part);
    }
    assert.equal((await stage.call("POST", `${path}/resend`, {}, bearer("other"))).status, 404);
    const manager = await stage.call("POST", `${path}/resend`, {}, bearer("boss", "notify:manage"));
    assert.equal(manager.status, 200, manager.text);
    const copy = `/api/v1/messages/${manager.body.message_id}`;
    assert.equal((await stage.call("GET", copy, undefined, shop)).status, 200, "the owner sees it");
    const statuses: number[] = [];
    for (let count = 0; count < 4; count += 1) {
      statuses.push((await stage.call("POST", `${path}/resend`, {}, shop)).status);
    }
    assert.ok(statuses.includes(429), statuses.join());
    await stage.close();
  });
});
