// Listening addresses.
import assert from "node:assert/strict";
import { test } from "node:test";
import { formatAddress, isLoopbackAddress, parseAddress } from "@platform/kernel/config";

const accepted: [text: string, host: string | undefined, port: number][] = [
  [":8080", undefined, 8080],
  ["8080", undefined, 8080],
  ["0", undefined, 0],
  ["localhost:8080", "localhost", 8080],
  ["127.0.0.1:0", "127.0.0.1", 0],
  ["[::1]:65535", "::1", 65_535],
  ["[::]:80", "::", 80],
  ["my-host.example.org:80", "my-host.example.org", 80],
];
for (const [text, host, port] of accepted) {
  test(`${text} is parsed, and formatted again`, () => {
    assert.deepEqual(parseAddress(text), { host, port });
    assert.deepEqual(parseAddress(formatAddress({ host, port })), { host, port });
  });
}

for (const text of [
  "",
  ":",
  "host",
  "host:",
  "::1:80",
  ":65536",
  ":-1",
  "a b:80",
  "[::1:80",
  "[x y]:80",
  "1.2.3:80",
  "1.2.3.4.5:80",
  "tcp://h:80",
  ":8080x",
  "h:80:90",
]) {
  test(`${JSON.stringify(text)} is rejected`, () => assert.equal(parseAddress(text), undefined));
}

test("only addresses that other machines cannot reach are loopback", () => {
  const answers = [
    "localhost:1",
    "127.9.9.9:1",
    "[::1]:1",
    ":1",
    "0.0.0.0:1",
    "127.example.org:1",
    "[::]:1",
  ].map((text) => isLoopbackAddress(parseAddress(text)!));
  assert.deepEqual(answers, [true, true, true, false, false, false, false]);
});
