// Redaction of recordings: credentials of every kind go, everything else stays as it is.
import assert from "node:assert/strict";
import { test } from "node:test";
import { gzipSync } from "node:zlib";
import { describeBody } from "../../src/recording/body-content.ts";
import { Redactor } from "../../src/recording/redactor.ts";

const redactor = new Redactor(["X-Account", "pin", "iban"]);

const fields: [name: string, value: string, redacted: string][] = [
  ["Authorization", "Bearer abc.def", "[redacted]"],
  ["proxy-authorization", "Basic eDp5", "[redacted]"],
  ["Cookie", "a=1; session=s3cret==; b=", "a=[redacted]; session=[redacted]; b=[redacted]"],
  ["Set-Cookie", "id=x=y; Path=/; HttpOnly", "id=[redacted]; Path=/; HttpOnly"],
  ["X-API-Key", "k", "[redacted]"],
  ["apikey", "k", "[redacted]"],
  ["X-Account", "17", "[redacted]"],
  ["Location", "https://a/cb?code=1&x=2", "https://a/cb?code=%5Bredacted%5D&x=2"],
  [
    "Referer",
    "https://u:pw@a/?access_token=1",
    "https://u:[redacted]@a/?access_token=%5Bredacted%5D",
  ],
  ["X-Note", "sent as Bearer abcdef", "sent as Bearer [redacted]"],
  ["Accept", "text/html", "text/html"],
];

for (const [name, value, redacted] of fields) {
  test(`the field ${name}: ${value}`, () => {
    assert.deepEqual(redactor.redactFields([[name, value]]), [[name, redacted]]);
  });
}

const bodies: [type: string, text: string, redacted: string][] = [
  [
    "application/json",
    '{"user":"a","password":"x","pin":1,"max_tokens":5,"deep":[{"api_key":"k"}]}',
    '{"user":"a","password":"[redacted]","pin":"[redacted]","max_tokens":5,"deep":[{"api_key":"[redacted]"}]}',
  ],
  ["application/json", '{"p\\u0061ssword":"x"}', '{"password":"[redacted]"}'],
  ["application/json", '{"secrets":{"a":["x",true]}}', '{"secrets":{"a":["[redacted]",true]}}'],
  ["application/vnd.api+json", '{ "n": 1.50 }', '{ "n": 1.50 }'],
  ["application/x-ndjson", '{"a":1}\n{"token":"t"}\n', '{"a":1}\n{"token":"[redacted]"}\n'],
  [
    "application/x-www-form-urlencoded",
    "grant_type=x&client_secret=s&pass%77ord=p&code=c&a=b",
    "grant_type=x&client_secret=%5Bredacted%5D&pass%77ord=%5Bredacted%5D&code=%5Bredacted%5D&a=b",
  ],
  [
    "application/soap+xml",
    '<u:Password Type="t">x</u:Password><b>y</b>',
    '<u:Password Type="t">[redacted]</u:Password><b>y</b>',
  ],
  [
    "text/event-stream",
    'id: 1\ndata: {"token":"t"}\n\ndata: {x Bearer abcdef\n',
    'id: 1\ndata: {"token":"[redacted]"}\n\ndata: {x Bearer [redacted]\n',
  ],
  ["text/plain", "Authorization: Bearer abcdef", "Authorization: Bearer [redacted]"],
];

for (const [type, text, redacted] of bodies) {
  test(`a body of ${type}: ${text.slice(0, 40)}`, () => {
    assert.equal(redactor.redactBody(text, type), redacted);
  });
}

test("the query of a target is redacted by name, the path never", () => {
  const target = "/token=1?X-Amz-Signature=f&page=2&sig=1&iban=DE1";
  assert.equal(
    redactor.redactTarget(target),
    "/token=1?X-Amz-Signature=%5Bredacted%5D&page=2&sig=%5Bredacted%5D&iban=%5Bredacted%5D",
  );
});

test("bodies that cannot be redacted are omitted", async () => {
  const describe = (type: string, content: Buffer, coding?: string) =>
    describeBody(
      {
        fields: [
          ["Content-Type", type],
          ...(coding === undefined ? [] : [["Content-Encoding", coding] as [string, string]]),
        ],
        content,
      },
      redactor,
      1_000,
    );
  const json = Buffer.from('{"password":"x"}');
  const deep = Buffer.from(`${"[".repeat(400)}${"]".repeat(400)}`);
  assert.deepEqual(await describe("application/json", json.subarray(0, 12)), {
    bytes: 12,
    omitted: "json",
  });
  assert.deepEqual(await describe("application/json", deep), { bytes: 800, omitted: "json" });
  assert.deepEqual(await describe("multipart/form-data; boundary=x", json), {
    bytes: 16,
    omitted: "multipart",
  });
  const zipped = gzipSync(json);
  assert.deepEqual(await describe("application/json", zipped, "gzip"), {
    bytes: zipped.length,
    text: '{"password":"[redacted]"}',
  });
  assert.deepEqual(await describe("application/json", json, "gzip"), {
    bytes: 16,
    omitted: "coding",
  });
  const bomb = gzipSync(Buffer.alloc(1_000_000));
  assert.deepEqual(await describe("text/plain", bomb, "gzip"), {
    bytes: bomb.length,
    omitted: "coding",
  });
  assert.deepEqual(await describe("image/png", Buffer.of(0x89, 0xff)), {
    bytes: 2,
    base64: "if8=",
  });
});
