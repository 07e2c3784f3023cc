// Identity under `platform up`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { authEntry } from "../../src/services/auth.ts";
import type { EntryContext } from "../../src/services/entry.ts";
import { gateEntry } from "../../src/services/gate.ts";

test("identity trusts client addresses from the local gateway's address alone, and only if it runs", () => {
  const context = (running: EntryContext["running"], host?: string): EntryContext => ({
    dataDir: "/data",
    dataDirShown: "./data",
    credentialsShown: "./data/credentials.env",
    addresses: new Map([["identity_addr", { host, port: 8086 }]]),
    consoleUrl: undefined,
    domain: undefined,
    hasAutomaticTls: false,
    credentials: {},
    secure: new Set(),
    running,
  });
  const key = "PLATFORM_AUTH_TRUSTED_PROXIES";
  const behind = context([gateEntry, authEntry]);
  for (const [host, trusted] of [
    [undefined, "127.0.0.1"],
    ["127.0.0.1", "127.0.0.1"],
    ["::1", "::1"],
    ["::", "127.0.0.1"],
    ["192.0.2.7", "192.0.2.7"],
    ["localhost", "127.0.0.1,::1"],
  ] as const) {
    const { env } = authEntry.configure(context([gateEntry, authEntry], host));
    assert.equal(env[key], trusted, host ?? "the default");
  }
  assert.equal(authEntry.configure(context([authEntry])).env[key], undefined);
  process.env[key] = "192.0.2.1";
  try {
    assert.equal(authEntry.configure(behind).env[key], undefined, "the operator's setting wins");
  } finally {
    delete process.env[key];
  }
});
