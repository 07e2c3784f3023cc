import assert from "node:assert/strict";
import { test } from "node:test";
import { readHostName } from "../../src/client/host-name.ts";

test("a host is read without its port and in lower case", () => {
  assert.equal(readHostName("Example.ORG:8080"), "example.org");
  assert.equal(readHostName("example.org"), "example.org");
  assert.equal(readHostName("[::1]:80"), "[::1]");
  assert.equal(readHostName("[::1]"), "[::1]");
  assert.equal(readHostName("example.org.:80"), "example.org");
});
