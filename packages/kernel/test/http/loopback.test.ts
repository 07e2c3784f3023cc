// Loopback-only access.
import assert from "node:assert/strict";
import { test } from "node:test";
import { checkLoopback, isLoopbackHost, type Peer } from "@platform/kernel/http";

const LOCAL: Peer = { kind: "tcp", address: "127.0.0.1" };

const cases: [name: string, peer: Peer, headers: Record<string, string>, allowed: boolean][] = [
  ["a local program", LOCAL, { host: "localhost:8080" }, true],
  ["over IPv6", { kind: "tcp", address: "::1" }, { host: "[::1]:8080" }, true],
  ["over mapped IPv4", { kind: "tcp", address: "::ffff:127.0.0.1" }, { host: "127.0.0.1" }, true],
  ["over a Unix socket", { kind: "unix" }, { host: "localhost" }, true],
  ["from another machine", { kind: "tcp", address: "10.0.0.7" }, { host: "localhost" }, false],
  [
    "mapped from another machine",
    { kind: "tcp", address: "::ffff:10.0.0.7" },
    { host: "localhost" },
    false,
  ],
  ["from nobody knows where", { kind: "unknown" }, { host: "localhost" }, false],
  ["without a Host", LOCAL, {}, false],
  ["with the full name of localhost", LOCAL, { host: "localhost.:8080" }, true],
  ["with a mapped address as Host", LOCAL, { host: "[::ffff:127.0.0.1]:8080" }, true],
  ["with a mapped foreign address as Host", LOCAL, { host: "[::ffff:10.0.0.7]" }, false],
  ["with a name below localhost", LOCAL, { host: "shop.localhost" }, false],
  ["with a rebound name", LOCAL, { host: "evil.example:8080" }, false],
  ["with a name that only begins well", LOCAL, { host: "localhost.evil.example" }, false],
  ["with user information in Host", LOCAL, { host: "localhost@evil.example" }, false],
  ["through a proxy: Forwarded", LOCAL, { host: "localhost", forwarded: "for=1.2.3.4" }, false],
  [
    "through a proxy: X-Forwarded-For",
    LOCAL,
    { host: "localhost", "x-forwarded-for": "127.0.0.1" },
    false,
  ],
  ["through a proxy: an empty header", LOCAL, { host: "localhost", "x-real-ip": "" }, false],
  ["through a proxy: Via", LOCAL, { host: "localhost", via: "1.1 x" }, false],
  [
    "a page of its own",
    LOCAL,
    { host: "localhost:1", origin: "http://localhost:1", "sec-fetch-site": "same-origin" },
    true,
  ],
  ["typed into the address bar", LOCAL, { host: "localhost:1", "sec-fetch-site": "none" }, true],
  ["a foreign page", LOCAL, { host: "localhost:1", origin: "https://evil.example" }, false],
  [
    "a page on another local port",
    LOCAL,
    { host: "localhost:1", origin: "http://localhost:2" },
    false,
  ],
  ["a sandboxed page", LOCAL, { host: "localhost:1", origin: "null" }, false],
  [
    "a foreign page without Origin",
    LOCAL,
    { host: "localhost:1", "sec-fetch-site": "cross-site" },
    false,
  ],
  [
    "a page of the same site only",
    LOCAL,
    { host: "localhost:1", "sec-fetch-site": "same-site" },
    false,
  ],
];

for (const [name, peer, headers, allowed] of cases) {
  test(`${name} is ${allowed ? "allowed" : "rejected"}`, () => {
    const verdict = checkLoopback({ peer, getHeader: (header) => headers[header] });
    assert.equal(verdict.allowed, allowed, JSON.stringify(verdict));
  });
}

test("localhost and loopback addresses are loopback hosts, similar names are not", () => {
  for (const host of ["LOCALHOST:80", "localhost.", "127.0.0.1:1", "[::1]"])
    assert.ok(isLoopbackHost(host), host);
  for (const host of [
    "::1",
    "localhost:",
    "localhost:x",
    "localhost..",
    "127.0.0.1.nip.io",
    "[::1",
    "a localhost",
  ]) {
    assert.ok(!isLoopbackHost(host), host);
  }
});
