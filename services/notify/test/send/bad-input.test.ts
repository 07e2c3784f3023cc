// Invalid and malicious requests: refused with the place of the mistake.
import assert from "node:assert/strict";
import { after, before, describe, test } from "node:test";
import { startStage, type Stage } from "../stage.ts";

const BASE = { to: "ada@example.org", subject: "Hello", text: "Hello" };

const REFUSED: readonly [name: string, change: Record<string, unknown>, place: RegExp][] = [
  ["no recipient", { to: undefined }, /body\.to/],
  ["an unknown field", { body: "Hello" }, /Unrecognized key/i],
  ["neither text nor html", { text: undefined }, /body\.text/],
  ["CRLF in the subject", { subject: "Hi\r\nBcc: eve@example.org" }, /body\.subject/],
  ["a bare LF in the subject", { subject: "Hi\nX-Evil: 1" }, /body\.subject/],
  ["CRLF in to", { to: "ada@example.org\r\nBcc: eve@example.org" }, /body\.to/],
  ["CRLF in a display name", { to: '"Ada\r\nBcc: eve@example.org" <ada@example.org>' }, /body\.to/],
  ["CRLF in from", { from: "a@shop.example\r\nX: 1" }, /body\.from/],
  ["CRLF in reply_to", { reply_to: "a@shop.example\nX: 1" }, /body\.reply_to/],
  ["CRLF in a header", { headers: { "X-A": "1\r\nBcc: eve@example.org" } }, /body\.headers\.X-A/],
  ["CRLF in a header name", { headers: { "X-A: 1\r\nBcc": "eve@example.org" } }, /body\.headers/],
  ["a reserved header", { headers: { Bcc: "eve@example.org" } }, /body\.headers\.Bcc/],
  ["Received", { headers: { received: "from x" } }, /body\.headers\.received/],
  ["DKIM-Signature", { headers: { "DKIM-Signature": "v=1" } }, /headers\.DKIM-Signature/],
  ["Content-Type", { headers: { "Content-Type": "text/html" } }, /headers\.Content-Type/],
  ["a list in one text", { to: "ada@example.org, eve@example.org" }, /body\.to/],
  ["a group", { to: "friends: ada@example.org;" }, /body\.to/],
  ["a comment", { to: "ada(comment)@example.org" }, /body\.to/],
  ["a quoted local part", { to: '"ada@evil"@example.org' }, /body\.to/],
  ["a source route", { to: "<@evil.example:ada@example.org>" }, /body\.to/],
  ["two at signs", { to: "ada@evil.example@example.org" }, /body\.to/],
  ["an address in the display name", { from: '"ceo@bank.example" <x@evil.example>' }, /body\.from/],
  ["an encoded word in the name", { from: "=?utf-8?q?ceo?= <x@evil.example>" }, /body\.from/],
  ["an IP address", { to: "ada@[192.0.2.1]" }, /body\.to/],
  ["a numeric domain", { to: "ada@192.0.2.1" }, /body\.to/],
  ["a NUL", { to: "ada\0@example.org" }, /body\.to/],
  ["a bidirectional override", { to: "ada\u202e@example.org" }, /body\.to/],
  ["a Cyrillic letter in a Latin domain", { to: "ada@pаypal.example" }, /body\.to: .*look alike/],
  ["a Cyrillic domain that reads as Latin", { to: "ada@аррӏе.com" }, /body\.to: .*look alike/],
  ["its punycode", { to: "ada@xn--80ak6aa92e.com" }, /body\.to: .*look alike/],
  ["full-width letters", { to: "ada@ｅxample.org" }, /body\.to/],
  ["a local part in UTF-8", { to: "gr\u00fc\u00dfe@example.org" }, /SMTPUTF8/],
  ["an SMTP command in the address", { to: "ada@example.org>\r\nDATA" }, /body\.to/],
  [
    "51 recipients",
    { cc: Array.from({ length: 50 }, (_, index) => `a${index}@example.org`) },
    /at most 50 recipients/,
  ],
  ["a right-to-left override in the subject", { subject: "Hi \u202eelif" }, /body\.subject/],
  ["an isolate in the subject", { subject: "Hi \u2067elif\u2069" }, /body\.subject/],
  ...[
    ["a right-to-left override", "invoice\u202efdp.exe"],
    ["a right-to-left mark", "invoice\u200f.exe"],
    ["an Arabic letter mark", "invoice\u061c.exe"],
    ["a zero-width space", "invoice.pdf\u200b.exe"],
    ["a soft hyphen", "invoice.pdf\u00ad.exe"],
    ["a tag character", "invoice.pdf\u{e0041}.exe"],
    ["a Hangul filler", "invoice.pdf\u3164.exe"],
    ["half of a surrogate pair", "invoice\ud800.exe"],
    ["a row of blanks", `invoice.pdf${" ".repeat(60)}.exe`],
    ["a row of other blanks", `invoice.pdf${"\u2003\u00a0".repeat(9)}.exe`],
  ].map(([kind, filename]): (typeof REFUSED)[number] => [
    `${kind} in a filename`,
    { attachments: [{ filename, content: "AAAA" }] },
    /attachments\.0\.filename/,
  ]),
  [
    "an attachment path",
    { attachments: [{ filename: "../../etc/passwd", content: "AAAA" }] },
    /attachments\.0\.filename/,
  ],
  [
    "CRLF in a filename",
    { attachments: [{ filename: 'a"\r\nX: 1', content: "AAAA" }] },
    /attachments\.0\.filename/,
  ],
  [
    "CRLF in a media type",
    { attachments: [{ filename: "a", content: "AAAA", content_type: "text/plain\r\nX: 1" }] },
    /attachments\.0\.content_type/,
  ],
  [
    "a nested message",
    { attachments: [{ filename: "a", content: "AAAA", content_type: "message/rfc822" }] },
    /attachments\.0\.content_type/,
  ],
  [
    "CRLF in a content id",
    { attachments: [{ filename: "a", content: "AAAA", content_id: "a>\r\nX: 1" }] },
    /attachments\.0\.content_id/,
  ],
  ["no base64", { attachments: [{ filename: "a", content: "*" }] }, /attachments\.0\.content/],
  [
    "a path",
    { attachments: [{ filename: "a", content: "AAAA", path: "/etc/passwd" }] },
    /Unrecognized key/i,
  ],
  ["send_at next year", { send_at: "2099-01-01T00:00:00Z" }, /body\.send_at/],
  [
    "an SMS with HTML",
    { channel: "sms", to: "+4930123456", html: "x", subject: undefined },
    /html/,
  ],
  ["an SMS to an address", { channel: "sms", subject: undefined }, /E\.164/],
];

describe("bad input", () => {
  let stage: Stage;
  before(async () => {
    stage = await startStage({ from_domain: "shop.example" });
  });
  after(() => stage.close());

  for (const [name, change, place] of REFUSED) {
    test(`${name} is refused`, async () => {
      const { status, body, headers } = await stage.call("POST", "/api/v1/send", {
        ...BASE,
        ...change,
      });
      assert.equal(status, 400, JSON.stringify(body));
      assert.equal(headers.get("content-type"), "application/problem+json");
      assert.equal(body.code, "validation_failed");
      assert.match(body.detail, place);
    });
  }

  test("joiners, accents and emoji in subjects and filenames are no disguise", async () => {
    const filename =
      "\u0646\u0627\u0645\u0647\u200c\u0647\u0627 \u{1f469}\u200d\u{1f4bb} e\u0301 a.b.pdf";
    const mail = { ...BASE, subject: filename, attachments: [{ filename, content: "AAAA" }] };
    const small = await startStage();
    const sent = await small.call("POST", "/api/v1/send", mail);
    assert.equal(sent.status, 200, sent.text);
    await small.close();
  });

  test("a subject that a template makes is checked like others", async () => {
    const template = { name: "order", subject: "Order {{ id }}", text: "x" };
    await stage.call("POST", "/api/v1/templates", template);
    const sent = await stage.call("POST", "/api/v1/send/template", {
      template: "order",
      to: BASE.to,
      variables: { id: "17\u202e" },
    });
    assert.equal(sent.status, 400, sent.text);
    assert.match(sent.body.detail, /body\.subject/);
  });

  test("nothing of it was stored", async () => {
    const { body } = await stage.call("GET", "/api/v1/messages");
    assert.deepEqual(body.messages, []);
  });

  test("bare CR, bare LF and lone dots in the content leave as CRLF and data", async () => {
    const { body } = await stage.call("POST", "/api/v1/send", {
      ...BASE,
      text: "one\n.\ntwo\r.\rMAIL FROM:<evil@example.org>\r\n.\r\nthree",
    });
    const raw = await stage.call("GET", `/api/v1/inbox/${body.message_id}/raw`);
    assert.doesNotMatch(raw.text, /[^\r]\n|\r[^\n]/);
    assert.match(raw.text, /one\r\n\.\r\ntwo\r\n\.\r\nMAIL FROM/);
  });

  test("too large a body is 413, too large attachments are 400", async () => {
    const small = await startStage({ attachment_bytes_max: 10 });
    const content = Buffer.alloc(11).toString("base64");
    const refused = await small.call("POST", "/api/v1/send", {
      ...BASE,
      attachments: [{ filename: "a", content }],
    });
    assert.equal(refused.status, 400);
    assert.match(refused.body.detail, /exceed 10 bytes/);
    const huge = await small.call("POST", "/api/v1/send", {
      ...BASE,
      text: "x".repeat(13_000_000),
    });
    assert.equal(huge.status, 413);
    await small.close();
  });
});
