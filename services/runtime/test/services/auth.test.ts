// Identity under `platform up`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { authEntry } from "../../src/services/auth.ts";
import type { EntryContext } from "../../src/services/entry.ts";
import { gateEntry } from "../../src/services/gate.ts";

test("identity trusts the local gateway's client addresses only if the gateway runs", () => {
  const context = (running: EntryContext["running"]): EntryContext => ({
    dataDir: "/data",
    dataDirShown: "./data",
    credentialsShown: "./data/credentials.env",
    addresses: new Map([["identity_addr", { host: "127.0.0.1", port: 8086 }]]),
    consoleUrl: undefined,
    domain: undefined,
    credentials: {},
    secure: new Set(),
    running,
  });
  const key = "PLATFORM_AUTH_TRUSTED_PROXIES";
  const behind = context([gateEntry, authEntry]);
  assert.equal(authEntry.configure(behind).env[key], "127.0.0.0/8,::1");
  assert.equal(authEntry.configure(context([authEntry])).env[key], undefined);
  process.env[key] = "192.0.2.1";
  try {
    assert.equal(authEntry.configure(behind).env[key], undefined, "the operator's setting wins");
  } finally {
    delete process.env[key];
  }
});
