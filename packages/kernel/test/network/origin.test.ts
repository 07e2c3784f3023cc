// The form of origins (RFC 6454 section 6.2).
import assert from "node:assert/strict";
import { test } from "node:test";
import { isSerializedOrigin } from "../../src/network/index.ts";

test("a serialized origin is a scheme, a host and perhaps a port", () => {
  for (const origin of [
    "https://good.example",
    "http://localhost:3000",
    "http://[::1]:8080",
    "http://192.0.2.1",
    "https://xn--bcher-kva.example.",
    "chrome-extension://abcdefghijklmnop",
  ]) {
    assert.equal(isSerializedOrigin(origin), true, origin);
  }
});

test("everything else is none, although it may end as one", () => {
  for (const text of [
    "https://evil.example#.good.example",
    "https://evil.example/.good.example",
    "https://evil.example?.good.example",
    "https://evil.example\\.good.example",
    "https://evil.example:80.good.example",
    "https://user@good.example",
    "https://evil.example .good.example",
    "https://.good.example",
    "https://good.example/",
    "https://Good.example",
    "https://a,https://good.example",
    "null",
    "",
  ]) {
    assert.equal(isSerializedOrigin(text), false, text);
  }
});
