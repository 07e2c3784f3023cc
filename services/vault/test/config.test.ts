// Settings that are refused when storage starts.
import assert from "node:assert/strict";
import { test } from "node:test";
import { loadConfig } from "@platform/kernel/config";
import { vaultDefinition } from "../src/config.ts";

const load = (env: Record<string, string>) =>
  loadConfig(vaultDefinition, { argv: [], env, readFile: () => "{}" });

test("settings of the secret service are refused by name while storage does not read them", () => {
  for (const name of [
    "PLATFORM_SECRET_URL",
    "PLATFORM_SECRET_API_KEY",
    "PLATFORM_SECRET_TENANT_ID",
  ]) {
    assert.throws(
      () => load({ [name]: "something-set" }),
      ({ message }: Error) =>
        message.includes(name) &&
        message.includes("not available yet") &&
        (name !== "PLATFORM_SECRET_API_KEY" || !message.includes("something-set")),
    );
  }
});

test("an empty setting of the secret service, and its default tenant, stop nothing", () => {
  for (const [name, value] of [
    ["PLATFORM_SECRET_URL", ""],
    ["PLATFORM_SECRET_TENANT_ID", "default"],
  ] as const)
    assert.equal(load({ [name]: value }).kind, "run");
});
