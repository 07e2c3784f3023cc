// Invitations (RFC 6047), display names and local parts that need quotes (RFC 5322 section 3.4, RFC 5321 section 4.1.2).
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { parseMailbox } from "../../src/address/mailbox.ts";
import { startStage, type Stage } from "../stage.ts";

const ICS = [
  "BEGIN:VCALENDAR",
  "VERSION:2.0",
  "METHOD:REQUEST",
  "BEGIN:VEVENT",
  "UID:1@shop.example",
  "SUMMARY:K\u00e4se",
  "END:VEVENT",
  "END:VCALENDAR",
  "",
].join("\r\n");
const MAIL = { to: "ada@example.org", subject: "Hi", text: "Come", html: "<p>Come</p>" };

describe("invitations", () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage();
  });
  after(() => stage.close());
  const send = (change: object) => stage.call("POST", "/api/v1/send", { ...MAIL, ...change });

  test("are the last alternative, with their method", async () => {
    const sent = await send({ calendar: { method: "REQUEST", content: ICS } });
    assert.equal(sent.status, 200, sent.text);
    const raw = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}/raw`);
    assert.match(
      raw.text,
      /multipart\/alternative[\s\S]*text\/plain[\s\S]*text\/html[\s\S]*Content-Type: text\/calendar; charset=utf-8; method=REQUEST\r\n/,
    );
    const found = await stage.call("GET", `/api/v1/messages/${sent.body.message_id}/content`);
    assert.equal(found.body.attachments[0].content_type, "text/calendar");
  });

  test("can be attached with their method", async () => {
    const content = Buffer.from(ICS).toString("base64");
    const attach = (content_type: string) =>
      send({ attachments: [{ filename: "invite.ics", content_type, content }] });
    const sent = await attach("text/calendar; method=REQUEST; charset=utf-8");
    assert.equal(sent.status, 200, sent.text);
    const raw = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}/raw`);
    assert.match(
      raw.text,
      /Content-Type: text\/calendar; method=REQUEST; charset=utf-8;\r\n name=/,
    );
    for (const type of [
      "text/calendar; method=A\r\nX: 1",
      "text/calendar; x=y",
      "text/plain; a=b",
    ]) {
      assert.equal((await attach(type)).status, 400, type);
    }
  });

  test("are refused if they are no iCalendar, or have another method", async () => {
    for (const [content, method] of [
      ["hello", "REQUEST"],
      [ICS, "CANCEL"],
      [ICS.replace("METHOD:REQUEST\r\n", ""), "REQUEST"],
      [ICS.replace("K", "\0"), "REQUEST"],
    ] as const) {
      const { status, body } = await send({ calendar: { method, content } });
      assert.equal(status, 400);
      assert.match(body.detail, /body\.calendar\.content/);
    }
    const { status, body } = await send({ calendar: { method: "DANCE", content: ICS } });
    assert.equal(status, 400);
    assert.match(body.detail, /calendar\.method/);
  });

  test("display names with commas and brackets are quoted", async () => {
    const to = "Doe, John (Sales) [x]; <ada@example.org>";
    const sent = await send({ to });
    assert.equal(sent.status, 200, sent.text);
    const raw = await stage.call("GET", `/api/v1/inbox/${sent.body.message_id}/raw`);
    assert.match(raw.text, /^To: "Doe, John \(Sales\) \[x\];" <ada@example\.org>\r$/m);
  });
});

test("quoted local parts are valid, and lose quotes that they do not need", () => {
  const read = (text: string) => {
    const found = parseMailbox(text);
    return found.ok ? found.mailbox.address : undefined;
  };
  assert.equal(read('"john.doe"@example.org'), "john.doe@example.org");
  assert.equal(read('"john doe"@example.org'), '"john doe"@example.org');
  assert.equal(read('John <"a\\"b"@example.org>'), '"a\\"b"@example.org');
  assert.equal(read('"a..b"@example.org'), '"a..b"@example.org');
  for (const text of [
    '"a@b"@example.org',
    '"a"b"@example.org',
    '"a\\"@example.org',
    '""@example.org',
    '"a\r\nb"@x.example',
  ]) {
    assert.equal(read(text), undefined, text);
  }
});
