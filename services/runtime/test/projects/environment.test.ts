// Variables that a project's process inherits.
import assert from "node:assert/strict";
import { test } from "node:test";
import { selectInherited } from "../../src/projects/environment.ts";

test("a project gets the variables of its terminal, and no credentials of the platform", () => {
  const terminal = {
    PATH: "/bin",
    GREETING: "hello",
    PLATFORM_DATA_DIR: "/else",
    PLATFORM_SERVICE_PORT: "1",
    BUN_JSC_maxNumWasmFastMemories: "1000",
  };
  const platform = {
    PATH: "/usr/bin",
    PLATFORM_AUTH_ADMIN_PASSWORD: "secret",
    PLATFORM_GATE_AUTH_TOKEN: "secret",
    PLATFORM_BACKUP_TOKEN: "secret",
    PLATFORM_JWT_SECRET: "secret",
    PLATFORM_SERVICE_TRUSTED_PROXIES: "127.0.0.1",
    PLATFORM_OTLP_ENDPOINT: "http://127.0.0.1:4318",
  };
  assert.deepEqual(selectInherited(terminal, platform), {
    PATH: "/bin",
    GREETING: "hello",
    PLATFORM_SERVICE_TRUSTED_PROXIES: "127.0.0.1",
    PLATFORM_OTLP_ENDPOINT: "http://127.0.0.1:4318",
  });
});
