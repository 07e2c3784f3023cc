// Mail under `platform up`.
import assert from "node:assert/strict";
import { test } from "node:test";
import { findMainListener, type EntryContext } from "../../src/services/entry.ts";
import { gateEntry } from "../../src/services/gate.ts";
import { notifyEntry } from "../../src/services/notify.ts";

const KEY = "PLATFORM_NOTIFY_PUBLIC_URL";

function publicUrlOf(settings: Partial<EntryContext>): string | undefined {
  const context: EntryContext = {
    dataDir: "/data",
    dataDirShown: "./data",
    credentialsShown: "./data/credentials.env",
    addresses: new Map([
      ["mail_addr", { host: "127.0.0.1", port: 8094 }],
      ["gateway_addr", { host: "127.0.0.1", port: 8080 }],
    ]),
    consoleUrl: undefined,
    domain: undefined,
    hasAutomaticTls: false,
    credentials: {},
    secure: new Set(),
    running: [gateEntry, notifyEntry],
    ...settings,
  };
  return notifyEntry.configure(context).env[KEY];
}

test("links in mails lead through the gateway", () => {
  assert.equal(publicUrlOf({}), "http://localhost:8080/notify");
  assert.equal(publicUrlOf({ domain: "example.org" }), "https://example.org/notify");
  assert.equal(publicUrlOf({ running: [notifyEntry] }), undefined);
  process.env[KEY] = "https://mail.example.org";
  try {
    assert.equal(publicUrlOf({}), undefined, "the operator's setting wins");
  } finally {
    delete process.env[KEY];
  }
});

test("mail is reached by its API, also if it receives mail", () => {
  const smtp = { name: "smtp", host: "127.0.0.1", port: 25 };
  const http = { name: "http", host: "127.0.0.1", port: 8094 };
  assert.equal(findMainListener(notifyEntry, [smtp, http]), http);
  const https = { ...http, name: "https" };
  assert.equal(findMainListener(notifyEntry, [smtp, https]), https);
  assert.equal(findMainListener(notifyEntry, []), undefined);
});
