// Figures of deliveries by day, stream, tag, template and channel.
import assert from "node:assert/strict";
import { createHmac } from "node:crypto";
import { after, describe, test } from "node:test";
import { startSink } from "../sink.ts";
import { STAGE_KINDS, startStage, startStageOn } from "../stage.ts";

const DAY_MS = 86_400_000;
const SECRET = "0123456789abcdef0123456789abcdef";
const OPEN: { close(): Promise<void> }[] = [];

after(async () => {
  for (const one of OPEN.toReversed()) await one.close();
});

function bearer(sub: string): Record<string, string> {
  const encode = (value: object): string =>
    Buffer.from(JSON.stringify(value)).toString("base64url");
  const head = encode({ alg: "HS256", typ: "at+jwt" });
  const claims = encode({
    sub,
    scope: "notify:send",
    exp: Math.floor(Date.now() / 1000) + 864_000,
  });
  const signature = createHmac("sha256", SECRET).update(`${head}.${claims}`).digest("base64url");
  return { authorization: `Bearer ${head}.${claims}.${signature}` };
}

for (const { kind, skip, prepare } of STAGE_KINDS) {
  test(
    `figures on ${kind} add up, by each dimension and client`,
    { skip: skip ?? false },
    async () => {
      const sink = await startSink({
        reply: (step, argument) =>
          step === "RCPT" && argument.startsWith("bad") ? "550 5.1.1 no such user" : undefined,
      });
      const stage = await startStageOn({
        ...(await prepare()),
        "smtp.host": "127.0.0.1",
        "smtp.port": sink.port,
        from_domain: "shop.example",
        jwt_secret: SECRET,
        token: "operator",
      });
      OPEN.push(sink, stage);
      const operator = { authorization: "Bearer operator" };
      const send = (body: object, headers = operator) =>
        stage.call("POST", "/api/v1/send", { subject: "Hi", text: "Hi", ...body }, headers);
      const today = new Date().toISOString().slice(0, 10);
      await send({ to: ["a@x.example", "b@x.example"], tags: ["one", "two"] });
      await send({ to: "bad@x.example", tags: ["one"] });
      await send({ to: "c@x.example", stream: "bulk" });
      await send({ to: "d@x.example" }, bearer("shop") as typeof operator);
      const link = /\/unsubscribe\/[^>]+/.exec(
        sink.accepted.find(({ recipient }) => recipient === "c@x.example")!.data,
      )![0];
      const form = { "Content-Type": "application/x-www-form-urlencoded" };
      await stage.call("POST", link, "List-Unsubscribe=One-Click", form);
      const read = async (query: string, headers = operator) =>
        (await stage.call("GET", `/api/v1/analytics${query}`, undefined, headers)).body;

      const byDay = await read("");
      assert.equal(byDay.to, today);
      assert.equal(byDay.groups.length, 1);
      assert.equal(byDay.groups[0].day, today);
      const { recipients, sent, bounced, unsubscribed, opened } = byDay.totals;
      assert.deepEqual([recipients, sent, bounced, unsubscribed, opened], [5, 4, 1, 1, 0]);

      const byTag = await read("?by=tag");
      const tags = byTag.groups.map((group: Record<string, unknown>) => [
        group["tag"],
        group["recipients"],
        group["bounced"],
      ]);
      assert.deepEqual(tags, [
        [null, 2, 0],
        ["one", 3, 1],
        ["two", 2, 0],
      ]);
      const byStream = await read("?by=stream");
      assert.deepEqual(
        byStream.groups.map((group: Record<string, unknown>) => [group["stream"], group["sent"]]),
        [
          ["bulk", 1],
          ["transactional", 3],
        ],
      );
      assert.equal((await read("?stream=bulk")).totals.recipients, 1);
      assert.equal((await read("?by=channel")).groups[0].channel, "email");
      assert.equal((await read("?by=template")).groups[0].template, null);
      assert.equal((await read("", bearer("shop") as typeof operator)).totals.recipients, 1);
      assert.equal((await read("", bearer("other") as typeof operator)).totals.recipients, 0);

      stage.advance(DAY_MS);
      const tomorrow = new Date(Date.now() + DAY_MS).toISOString().slice(0, 10);
      await send({ to: "e@x.example" });
      const two = await read("");
      assert.deepEqual(
        two.groups.map((group: Record<string, unknown>) => [group["day"], group["recipients"]]),
        [
          [today, 5],
          [tomorrow, 1],
        ],
      );
      assert.equal((await read(`?from=${today}&to=${today}`)).totals.recipients, 5);
      assert.equal((await read(`?from=${tomorrow}&to=${tomorrow}`)).totals.recipients, 1);
    },
  );
}

describe("bounds", () => {
  test("invalid and too long periods are refused with the reason", async () => {
    const stage = await startStage();
    OPEN.push(stage);
    for (const query of [
      "from=2026-13-01",
      "from=yesterday",
      "from=2026-02-02&to=2026-02-01",
      "from=2026-01-01&to=2026-06-01",
      "from=1969-01-01&to=1969-01-02",
      "by=color",
      "stream=other",
    ]) {
      const answer = await stage.call("GET", `/api/v1/analytics?${query}`);
      assert.equal(answer.status, 400, query);
      assert.equal(answer.body.code, "validation_failed");
    }
  });
});
