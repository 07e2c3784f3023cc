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
  ["Cookie", 'bare-token; a="x;y"', "[redacted]; a=[redacted];[redacted]"],
  ["Set-Cookie", "bare-token; Path=/a=b", "[redacted]; Path=/a=b"],
  ["X-Auth-Key", "k", "[redacted]"],
  ["X-Idempotency-Key", "k", "k"],
  ["X-Original-URL", "/a?b=1&api%5fkey=k", "/a?b=1&api%5fkey=%5Bredacted%5D"],
  ["X-Note", "got eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiIxIn0.c2ln.", "got [redacted]."],
  ["Location", "https://a/cb#access_token=t&x=2", "https://a/cb#access_token=%5Bredacted%5D&x=2"],
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
  ["application/json", '{"p\\u0061ssword":"x"}', '{"p\\u0061ssword":"[redacted]"}'],
  [
    "application/json",
    '{"password":"x","password":true,"token":"t","token":null,"a":{"pin":1},"a":2}',
    '{"password":"[redacted]","password":true,"token":"[redacted]","token":null,"a":{"pin":"[redacted]"},"a":2}',
  ],
  [
    "application/json",
    String.raw`[{"payload":"{\"api_key\":\"k\",\"n\":1.50}","url":"https://h/?x=1&sig=s"}, 1e400, "Bearer abcdef"]`,
    String.raw`[{"payload":"{\"api_key\":\"[redacted]\",\"n\":1.50}","url":"https://h/?x=1&sig=%5Bredacted%5D"}, 1e400, "Bearer [redacted]"]`,
  ],
  [
    "application/json",
    '{"otp":123456,"a\\"b":"}","secret":-1.5e3}',
    '{"otp":"[redacted]","a\\"b":"}","secret":"[redacted]"}',
  ],
  [
    "application/json",
    '{"user_code":"c","hint":"a token: 5 letters"}',
    '{"user_code":"[redacted]","hint":"a token: 5 letters"}',
  ],
  ["", '{"password":"x","n":1}', '{"password":"[redacted]","n":1}'],
  ["text/plain", '{"password":"x","n":1}', '{"password":"[redacted]","n":1}'],
  ["text/plain", '{"password":"x","n":', '{"password":"[redacted]","n":'],
  [
    "text/plain",
    String.raw`sent {\"password\":\"x\"}`,
    String.raw`sent {\"password\":\"[redacted]\"}`,
  ],
  ["text/plain", "user=a password=hunter2, next", "user=a password=[redacted], next"],
  [
    "application/x-www-form-urlencoded",
    "a=1;password=p;q&%63ode=c&pass%2577ord=p&pass%77ord%zz=p#q&client_assertion=j&code_verifier=v&x=%7B%22token%22%3A%22t%22%7D",
    "a=1;password=%5Bredacted%5D&%63ode=%5Bredacted%5D&pass%2577ord=%5Bredacted%5D&pass%77ord%zz=%5Bredacted%5D&client_assertion=%5Bredacted%5D&code_verifier=%5Bredacted%5D&x=%7B%22token%22%3A%22%5Bredacted%5D%22%7D",
  ],
  [
    "application/xml",
    "<a><password><![CDATA[x]]></password><token>t<b>u</b><!-- v --></token><c api_key=\"k\" d='1'/></a>",
    "<a><password>[redacted]</password><token>[redacted]</token><c api_key=\"[redacted]\" d='1'/></a>",
  ],
  ["application/xml", "<a>1</a><secret>x<y", "<a>1</a><secret>[redacted]"],
  [
    "text/html",
    '<input type=hidden name="csrf_token" value="t"><p>Hello</p>',
    '<input type=hidden name="csrf_token" value="[redacted]"><p>Hello</p>',
  ],
  [
    "text/event-stream",
    'data:  [{"token":"t"}]\r\ndata: {"api_key":\r\ndata: "token": "t"\r\n\r\n',
    'data:  [{"token":"[redacted]"}]\r\ndata: {"api_key":\r\ndata: "token": "[redacted]"\r\n\r\n',
  ],
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
  const latin1 = Buffer.from('{"password":"\u00e9"}', "latin1");
  for (const type of ["application/json", "text/plain", "application/octet-stream"]) {
    assert.deepEqual(await describe(type, latin1), { bytes: 16, omitted: "charset" }, type);
  }
  const utf16 = Buffer.from("password=hunter2", "utf16le");
  assert.deepEqual(await describe("text/plain; charset=utf-16", utf16), {
    bytes: 32,
    omitted: "charset",
  });
  assert.deepEqual(await describe("application/json", gzipSync(zipped), "gzip, gzip"), {
    bytes: gzipSync(zipped).length,
    text: '{"password":"[redacted]"}',
  });
  assert.deepEqual(await describe("application/json", zipped.subarray(0, 20), "gzip"), {
    bytes: 20,
    omitted: "coding",
  });
  assert.deepEqual(await describe("image/png", Buffer.of(0x89, 0xff)), {
    bytes: 2,
    base64: "if8=",
  });
});

test("fields that occur twice count all: codings in their order, contradicting types as unknown", async () => {
  const content = gzipSync('{"password":"x"}');
  const describe = (fields: [string, string][], body: Buffer) =>
    describeBody({ fields, content: body }, redactor, 1_000);
  const codings: [string, string][] = [
    ["Content-Encoding", "identity"],
    ["content-encoding", "gzip"],
  ];
  assert.deepEqual(await describe(codings, content), {
    bytes: content.length,
    text: '{"password":"[redacted]"}',
  });
  const json = Buffer.from('{"password":"x"}');
  const types: [string, string][] = [
    ["Content-Type", "image/png"],
    ["Content-Type", "application/json"],
  ];
  assert.deepEqual(await describe(types, json), { bytes: 16, text: '{"password":"[redacted]"}' });
  types.push(["Content-Type", "multipart/form-data; boundary=x"]);
  assert.deepEqual(await describe(types, json), { bytes: 16, omitted: "multipart" });
});

test("hostile bodies are redacted in time that grows with their size only", () => {
  const size = 200_000;
  const units = [
    "<password>",
    "<![CDATA[",
    "\\",
    'a="',
    "-eyJ",
    "bearer ",
    "a=;",
    "?a=b",
    "a ",
    "::",
  ];
  const types = ["", "application/xml", "application/x-www-form-urlencoded", "text/event-stream"];
  for (const unit of units) {
    // Quadratic time would be minutes.
    for (const type of types) redactor.redactBody(unit.repeat(size / unit.length), type);
  }
  const long = `"password": "${"x".repeat(4_000_000)}"`;
  assert.equal(redactor.redactBody(long, "text/plain"), '"password": "[redacted]"');
  assert.equal(redactor.redactBody(`{${long}}`, "application/json"), '{"password": "[redacted]"}');
});
