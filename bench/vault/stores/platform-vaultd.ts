// Our service, started as a user would start it.
import { existsSync } from "node:fs";
import { join } from "node:path";
import { awaitPort, findFreePort } from "../../../tests/stage/process.ts";
import { askVersion } from "../../../tests/stage/program.ts";
import { startPinned } from "../../harness/process.ts";
import { findBin, findRuntime, type Build } from "../../harness/build.ts";
import { CREDENTIALS } from "../presign.ts";
import type { ObjectStore } from "./store.ts";

const MASTER_KEY = Buffer.alloc(32, "bench").toString("base64");

/** Our service on one runtime. */
export function makePlatformVaultd(build: Build): ObjectStore {
  return {
    name: `vault (${build.label})`,
    isOurs: true,
    explainAbsence: () => {
      if (!existsSync(findBin(build, "platform-vaultd")))
        return "bin/platform-vaultd.js is missing";
      return existsSync(findRuntime(build.runtime))
        ? undefined
        : `${build.runtime} is not installed`;
    },
    readVersion: () => askVersion(findRuntime(build.runtime), ["--version"]),
    start: async ({ port, cores, folder, workspace, adminPort, env }) => {
      const started = workspace.keep(
        startPinned({
          name: `vault on ${build.label}`,
          command: process.execPath,
          args: [findBin(build, "platform-vaultd")],
          cores,
          env: {
            PLATFORM_RUNTIME: build.runtime,
            PORT: `127.0.0.1:${port}`,
            ADMIN_PORT: `127.0.0.1:${adminPort ?? (await findFreePort())}`,
            PLATFORM_VAULT_DATA_DIR: join(folder, "data"),
            STORE_ACCESS_KEY_ID: CREDENTIALS.accessKey,
            // A store that was filled by its own interface has no key yet.
            PLATFORM_VAULT_MASTER_KEY: MASTER_KEY,
            STORE_SECRET_ACCESS_KEY: CREDENTIALS.secretKey,
            // All requests use one access key, so its rate limit would be measured instead of the store.
            PLATFORM_VAULT_TENANT_RATE: "0",
            ...env,
          },
        }),
      );
      await awaitPort(started, port);
      return [started.pid];
    },
  };
}
