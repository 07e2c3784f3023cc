// Received mail: the bytes of attachments, charsets of headers, and bounds that count parts only.
import assert from "node:assert/strict";
import { test } from "node:test";
import type { InboundRow } from "../../src/database/inbound.ts";
import { createPayload } from "../../src/inbound/payload.ts";
import { checkStructure } from "../../src/inbound/structure.ts";
import { parseExactMail } from "../../src/message/exact-mail.ts";

const parse = (text: string) => parseExactMail(Buffer.from(text, "latin1"));

async function readAttachment(encoding: string, body: string, type = "application/octet-stream") {
  const cte = encoding === "" ? "" : `Content-Transfer-Encoding: ${encoding}\r\n`;
  const { attachments } = await parse(
    `MIME-Version: 1.0\r\nContent-Type: multipart/mixed; boundary="b\\"x"\r\n\r\npreamble\r\n--b"x\r\n\r\nHello\r\n--b"x \r\n${cte}Content-Type: ${type};\r\n name=a\r\nContent-Disposition: attachment\r\n\r\n${body}\r\n--b"x--\r\nepilogue`,
  );
  assert.equal(attachments.length, 1);
  return Buffer.from(attachments[0]!.content as ArrayBuffer).toString("latin1");
}

for (const encoding of ["", "7bit", "8bit", "binary", "8BIT (comment)"]) {
  for (const body of [
    "one\r\ntwo",
    "one\r\ntwo\r\n",
    "one\ntwo",
    "",
    "\r\n",
    "\r\n\r\n",
    "a\0b\xff",
    '--b\r\n--b"x- no',
  ]) {
    test(`an attachment in ${encoding || "no"} encoding keeps ${JSON.stringify(body)}`, async () => {
      assert.equal(await readAttachment(encoding, body), body);
      assert.equal(await readAttachment(encoding, body, "text/plain"), body);
    });
  }
}

test("quoted-printable keeps line ends, and loses soft breaks and blanks of the way (RFC 2045 section 6.7)", async () => {
  for (const [encoded, decoded] of [
    ["a=3Db\r\nc", "a=b\r\nc"],
    ["a=\r\nb", "ab"],
    ["a=0D=0Ab=0A", "a\r\nb\n"],
    ["a  \r\nb=20\r\n", "a\r\nb \r\n"],
    ["a=", "a"],
    ["50=% =zz", "50=% =zz"],
  ] as const) {
    assert.equal(await readAttachment("quoted-printable", encoded), decoded);
  }
});

test("a message that is only an attachment keeps its bytes", async () => {
  const { attachments } = await parse(
    "Content-Type: application/pdf\r\nContent-Transfer-Encoding: binary\r\n\r\n%PDF\r\n\0x",
  );
  assert.equal(
    Buffer.from(attachments[0]!.content as ArrayBuffer).toString("latin1"),
    "%PDF\r\n\0x",
  );
});

test("header bytes that are not ASCII are UTF-8, else Windows-1252; words of a charset are joined", async () => {
  for (const [subject, expected] of [
    ["Gr\xfc\xdfe \x80", "Gr\u00fc\u00dfe \u20ac"],
    ["Gr\xc3\xbc\xc3\x9fe", "Gr\u00fc\u00dfe"],
    ["=?utf-8?B?4oI=?= =?utf-8?B?rA==?=", "\u20ac"],
    ["=?utf-8?B?4oI?=\r\n =?UTF-8?Q?=AC?= x", "\u20ac x"],
    ["=?utf-8?Q?a_?= =?iso-8859-1?Q?=FC?=", "a \u00fc"],
    ["=?utf-7?Q?Gr+APwA3w-e?=", "Gr\u00fc\u00dfe"],
    ["=?utf-8?Q?a?= b =?utf-8?Q?c?=", "a b c"],
  ] as const) {
    assert.equal((await parse(`Subject: ${subject}\r\n\r\nx`)).subject, expected, subject);
  }
});

test("the document of a webhook has its sender decoded, and the method of an invitation", async () => {
  const mail =
    "From: =?utf-8?Q?J=C3?=\r\n =?utf-8?Q?=B6rg?= <joerg@sender.example>\r\nTo: =?utf-8?Q?=C3=84?= <a@shop.example>\r\nContent-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\nContent-Type: text/calendar; method=REQUEST; charset=utf-8\r\n\r\nBEGIN:VCALENDAR\r\n--b--\r\n";
  const row = { received_at: 0 } as InboundRow;
  const found = await createPayload(row, Buffer.from(mail), { ruleId: "1", recipients: [] });
  const { from, to, attachments } = found as {
    from: string;
    to: string[];
    attachments: { content_type: string; method: string; content: string }[];
  };
  assert.equal(from, "J\u00f6rg <joerg@sender.example>");
  assert.deepEqual(to, ["a@shop.example"]);
  assert.equal(attachments[0]!.method, "REQUEST");
  assert.equal(Buffer.from(attachments[0]!.content, "base64").toString(), "BEGIN:VCALENDAR");
});

test("a text in UTF-7 is read (RFC 2152)", async () => {
  const { text } = await parse(
    "Content-Type: text/plain; charset=utf-7\r\n\r\nHi Mom +Jjo-! 1 +- 1",
  );
  assert.equal(text?.trim(), "Hi Mom \u263a! 1 + 1");
});

test("MIME bounds count declared boundaries, never text", () => {
  const lines = "-- \r\n--x\r\n".repeat(10_050);
  const types = "Content-Type: multipart/mixed; boundary=x\r\n".repeat(300);
  for (const mail of [
    `Subject: x\r\n\r\n${lines}${types}`,
    `Content-Type: text/plain\r\n\r\n${lines}`,
    `Content-Type: multipart/mixed; boundary=b\r\n\r\n--b\r\n\r\n${types}\r\n${lines}--b--\r\n`,
  ]) {
    checkStructure(Buffer.from(mail));
  }
  const many = `Content-Type: multipart/mixed; boundary*0=b; boundary*1=c\r\n\r\n${"--bc\r\n\r\n".repeat(10_001)}`;
  assert.throws(() => checkStructure(Buffer.from(many)), /too many or too deeply/);
});

/** Contents that a parser of lines or of texts would change. */
const CONTENTS: readonly Buffer[] = [
  "BEGIN:VCALENDAREND:VCALENDAR\n",
  "BEGIN:VCALENDAR\r\nEND:VCALENDAR\r\n\r\n",
  "BEGIN:VCALENDAR\r\nEND:VCALENDAR",
  "SUMMARY:Caf\xe9\r\n",
  "\xef\xbb\xbfSUMMARY:Caf\xc3\xa9\r\n",
].map((text) => Buffer.from(text, "latin1"));

function encode(content: Buffer, encoding: string): string {
  if (encoding === "base64") return content.toString("base64");
  const text = content.toString("latin1");
  if (encoding !== "quoted-printable") return text;
  return text.replaceAll(
    /[\r\n=\x7f-\xff]/g,
    (one) => `=${one.charCodeAt(0).toString(16).padStart(2, "0").toUpperCase()}`,
  );
}

for (const [type, method] of [
  ["text/calendar; method=REQUEST", "REQUEST"],
  ["TEXT/Calendar;\r\n charset=iso-8859-1; method=cancel", "CANCEL"],
  ["text/calendar", undefined],
  ["application/ics; name=a.ics", undefined],
  ["text/csv; charset=iso-8859-1", undefined],
] as const) {
  test(`${JSON.stringify(type)} keeps its bytes, as an attachment and as an alternative`, async () => {
    for (const encoding of ["7bit", "8bit", "binary", "quoted-printable", "base64"]) {
      for (const disposition of ["", "Content-Disposition: attachment; filename=a.ics\r\n"]) {
        for (const content of CONTENTS) {
          const part = `Content-Type: ${type}\r\n${disposition}Content-Transfer-Encoding: ${encoding}\r\n\r\n${encode(content, encoding)}`;
          const parts = `--x\r\nContent-Type: text/plain\r\n\r\nHello\r\n--x\r\n${part}\r\n--x--\r\n`;
          for (const mail of [
            part,
            `Content-Type: multipart/alternative; boundary=x\r\n\r\n${parts}`,
            `Content-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\nContent-Type: message/rfc822\r\n\r\nContent-Type: multipart/mixed; boundary=x\r\n\r\n${parts}\r\n--y--\r\n`,
          ]) {
            const { attachments } = await parse(`From: a@b.example\r\n${mail}`);
            const [found] = attachments;
            assert.equal(attachments.length, 1, mail);
            assert.deepEqual(Buffer.from(found!.content as ArrayBuffer), content, mail);
            assert.equal(found!.mimeType, type.split(";")[0]!.toLowerCase());
            assert.equal(found!.method, method);
          }
        }
      }
    }
  });
}

test("an attached message keeps its bytes, with the parts in it", async () => {
  const message =
    "Subject: =?utf-8?Q?a?= =?utf-8?Q?b?=\r\nContent-Type: multipart/mixed; boundary=z\r\n\r\n--z\r\nContent-Type: text/calendar\r\nContent-Transfer-Encoding: 8bit\r\n\r\nCaf\xe9\n\r\n--z--\r\n";
  const { attachments, text } = await parse(
    `Content-Type: multipart/mixed; boundary=y\r\n\r\n--y\r\n\r\nHello\r\n--y\r\nContent-Type: message/rfc822\r\nContent-Disposition: attachment; filename=a.eml\r\n\r\n${message}\r\n--y\r\nContent-Type: text/csv\r\n\r\n1;2\r\n--y--\r\n`,
  );
  assert.deepEqual(
    attachments.map(({ content, mimeType }) => [
      mimeType,
      Buffer.from(content as ArrayBuffer).toString("latin1"),
    ]),
    [
      ["message/rfc822", message],
      ["text/csv", "1;2"],
    ],
  );
  assert.equal(text?.trim(), "Hello");
});
