// Settings that are read or refused when storage starts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "@platform/kernel/config";
import { vaultDefinition } from "../src/config.ts";

const load = (env: Record<string, string>) => {
  const loaded = loadConfig(vaultDefinition, { argv: [], env, readFile: () => "{}" });
  assert.equal(loaded.kind, "run");
  return loaded.config;
};

test("settings of the secret service have the names that all services share, and their own", () => {
  const shared = load({
    PLATFORM_SECRET_URL: "https://secrets.example",
    PLATFORM_SECRET_API_KEY: "token",
    PLATFORM_SECRET_TENANT_ID: "acme",
  });
  assert.equal(shared.secret_url, "https://secrets.example");
  assert.equal(shared.secret_api_key, "token");
  assert.equal(shared.secret_tenant_id, "acme");
  const own = load({
    PLATFORM_SECRET_URL: "https://secrets.example",
    PLATFORM_VAULT_SECRET_URL: "https://own.example",
  });
  assert.equal(own.secret_url, "https://own.example");
});

test("an empty setting of the secret service is none", () => {
  const config = load({ PLATFORM_SECRET_URL: "", PLATFORM_SECRET_API_KEY: "" });
  assert.equal(config.secret_url, undefined);
  assert.equal(config.secret_api_key, undefined);
});

test("settings of the secret service that cannot be are refused by name, without secrets", () => {
  for (const [name, value] of [
    ["PLATFORM_SECRET_URL", "ftp://secrets.example"],
    ["PLATFORM_VAULT_SECRET_MOUNT", "../other"],
    ["PLATFORM_VAULT_SECRET_KEYS_PATH", "/keys/"],
    ["PLATFORM_VAULT_SECRET_CACHE_S", "0"],
    ["PLATFORM_VAULT_MASTER_KEY_SOURCE", "cloud"],
  ] as const)
    assert.throws(() => load({ [name]: value }), new RegExp(name), name);
});
