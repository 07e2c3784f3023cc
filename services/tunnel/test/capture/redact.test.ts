// Hiding of credentials, and putting them back into edited requests.
import assert from "node:assert/strict";
import { test } from "node:test";
import {
  redactField,
  redactPath,
  redactText,
  restoreFields,
  restorePath,
  restoreText,
} from "../../src/capture/redact.ts";

test("credentials in fields are hidden, other values are not", () => {
  const cases: [name: string, value: string, shown: string][] = [
    ["Authorization", "Bearer abc.def", "Bearer [redacted]"],
    ["authorization", "onlytoken", "[redacted]"],
    ["Proxy-Authorization", "Basic eDp5", "Basic [redacted]"],
    ["Cookie", "sid=1; theme=dark", "sid=[redacted]; theme=[redacted]"],
    ["Set-Cookie", "sid=1; Path=/; HttpOnly", "sid=[redacted]; Path=/; HttpOnly"],
    ["X-Api-Key", "k", "[redacted]"],
    ["X-CSRF-Token", "k", "[redacted]"],
    ["Stripe-Signature", "t=1,v1=abc", "[redacted]"],
    ["X-Hub-Signature-256", "sha256=abc", "[redacted]"],
    ["Location", "https://a/b?access_token=x&y=1", "https://a/b?access_token=[redacted]&y=1"],
    ["Content-Type", "text/html; charset=utf-8", "text/html; charset=utf-8"],
    ["WWW-Authenticate", 'Bearer realm="x"', 'Bearer realm="x"'],
    ["Keep-Alive", "timeout=5", "timeout=5"],
  ];
  for (const [name, value, shown] of cases) {
    assert.deepEqual(redactField([name, value]), [name, shown]);
  }
});

test("credentials in queries are hidden", () => {
  assert.equal(
    redactPath("/a?token=1&page=2&X-Amz-Signature=3&user[password]=4&tokens=5"),
    "/a?token=[redacted]&page=2&X-Amz-Signature=[redacted]&user[password]=[redacted]&tokens=5",
  );
  assert.equal(redactPath("/token=1"), "/token=1");
});

test("credentials in bodies are hidden: JSON, forms, parts", () => {
  assert.equal(
    redactText('{"user":"a","password":"p\\"q","n":{"accessToken" : "t"}}', "application/json"),
    '{"user":"a","password":"[redacted]","n":{"accessToken" : "[redacted]"}}',
  );
  assert.equal(redactText('{"password":"cut of', ""), '{"password":"[redacted]');
  assert.equal(
    redactText("user=a&password=b", "application/x-www-form-urlencoded"),
    "user=a&password=[redacted]",
  );
  assert.equal(
    redactText(
      '--b\r\nContent-Disposition: form-data; name="password"\r\n\r\nhunter2\r\n--b--',
      "multipart/form-data; boundary=b",
    ),
    '--b\r\nContent-Disposition: form-data; name="password"\r\n\r\n[redacted]\r\n--b--',
  );
});

test("hiding takes no time that grows faster than the text", () => {
  const texts = ['"\\', 'name="a"\r\n', '"a":', "token", '"token":"'].map((part) =>
    part.repeat(65_536 / part.length),
  );
  const startedMs = performance.now();
  for (const text of texts) {
    redactText(text, "application/json");
    redactText(text, "multipart/form-data");
    redactText(text, "application/x-www-form-urlencoded");
  }
  // A quadratic pattern takes minutes.
  assert.ok(performance.now() - startedMs < 30_000);
});

test("hidden values of an edited request are put back at their positions", () => {
  const path = "/a?token=one&secret=two";
  assert.equal(restorePath(`${redactPath(path)}&n=1`, path), `${path}&n=1`);
  const fields = [
    ["Authorization", "Bearer abc"],
    ["Cookie", "a=1; b=2"],
  ] as const;
  assert.deepEqual(
    restoreFields(
      [
        ["cookie", "a=[redacted]; b=[redacted]; c=3"],
        ["authorization", "Bearer [redacted]"],
        ["X-New", "1"],
      ],
      fields,
    ),
    [
      ["cookie", "a=1; b=2; c=3"],
      ["authorization", "Bearer abc"],
      ["X-New", "1"],
    ],
  );
  const body = '{"password":"p","n":1}';
  const type = "application/json";
  assert.equal(
    restoreText('{"n":2,"password":"[redacted]"}', body, type),
    '{"n":2,"password":"p"}',
  );
});

test("a mark that stands for nothing is refused", () => {
  assert.throws(() => restorePath("/a?token=[redacted]", "/a"), /path: \[redacted\]/);
  assert.throws(() => restoreFields([["X-Key", "[redacted]"]], []), /headers: X-Key/);
  assert.throws(
    () => restoreFields([["Cookie", "a=[redacted]"]], [["Cookie", "a=1; b=2"]]),
    /headers: Cookie/,
  );
  assert.throws(() => restoreText("[redacted]", "[redacted]", ""), /body/);
});
