// Access to the admin API: its guard, the console, and operations for the identities of callers.
import type { OperationOptions } from "@platform/chassis";
import type { Guard } from "@platform/kernel/http";
import type { TokenVerifier } from "@platform/kernel/identity";
import type { LiveSecret } from "@platform/kernel/secrets";
import type { Directory } from "../access/directory.ts";
import { findUserKey } from "../access/known-callers.ts";
import type { VaultConfig } from "../config.ts";
import type { ObjectApi } from "../s3/context.ts";
import { InnerOperations, type InnerOperationsOptions } from "../s3/inner-operations.ts";
import { AdminGuard } from "./admin-guard.ts";
import { ConsoleOperations } from "./bucket/console-operations.ts";
import type { ShareOptions } from "./bucket/share-routes.ts";
import { describeConsole } from "./console.ts";
import { JOB_BODY_BYTES_MAX } from "./batch-job-routes.ts";
import { MODULE_BYTES_MAX } from "./module-routes.ts";
import { StorageCallers } from "./storage-callers.ts";

/** Options of {@link createAdminAccess}. */
export interface AdminAccessOptions {
  config: VaultConfig;
  api: ObjectApi;
  ids: InnerOperationsOptions["ids"];
  directory: Directory;
  /** Undefined if no issuer is configured. */
  tokens: TokenVerifier | undefined;
  /** The secret of root's key. */
  rootSecret: LiveSecret;
  /** True if the listener uses TLS. */
  isTls: boolean;
  /** The port of the object API. */
  objectPort: number;
  onOperation: InnerOperationsOptions["onFinished"];
}

/** The parts, as options of the admin API. */
export interface AdminAccess {
  adminGuard: AdminGuard;
  guard: Guard;
  /** Undefined if it is disabled. */
  console: OperationOptions["console"];
  operations: ConsoleOperations;
  share: ShareOptions;
}

export function createAdminAccess(options: AdminAccessOptions): AdminAccess {
  const { config, api, ids, directory, tokens, rootSecret } = options;
  const { isTls, objectPort, onOperation } = options;
  const { clock, trustedProxies, verifier, webIdentity } = api;
  const callers = new StorageCallers(directory, config.access_key_id);
  const adminGuard = new AdminGuard({ verifier, callers, tokens, findBytesMax });
  const operations = new ConsoleOperations({
    operations: new InnerOperations({ api, ids, onFinished: onOperation }),
    callers,
    trustedProxies,
    isTls,
  });
  return {
    adminGuard,
    guard: adminGuard.guard,
    console: config.enable_web_admin
      ? describeConsole(config, rootSecret, callers, directory)
      : undefined,
    operations,
    share: {
      operations,
      findSecret: (accessKey) =>
        accessKey === config.access_key_id
          ? rootSecret.value
          : findUserKey(accessKey, directory)?.secret,
      webIdentity,
      region: config.region,
      publicUrl: config.public_url,
      objectPort,
      clock,
    },
  };
}

// Modules and the keys of jobs are larger than other bodies.
function findBytesMax(path: string): number | undefined {
  if (path.startsWith("/admin/modules/")) return MODULE_BYTES_MAX;
  return path === "/admin/batch" ? JOB_BODY_BYTES_MAX : undefined;
}
