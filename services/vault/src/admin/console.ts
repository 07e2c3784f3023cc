// The web console of storage: sessions for root's key, for keys of users and for tokens.
import { randomUUID } from "node:crypto";
import type { Directory } from "../access/directory.ts";
import { findUserKey } from "../access/known-callers.ts";
import type { OperationOptions } from "@platform/chassis";
import { createUnauthorizedError } from "@platform/kernel/errors";
import type { Caller } from "@platform/kernel/identity";
import { toLiveSecret, type LiveSecret } from "@platform/kernel/secrets";
import type { VaultConfig } from "../config.ts";
import type { StorageCallers } from "./storage-callers.ts";

/** Describes the console. */
export function describeConsole(
  config: VaultConfig,
  rootSecret: LiveSecret,
  callers: StorageCallers,
  directory: Directory,
): OperationOptions["console"] {
  return {
    features: [
      "buckets",
      "objects",
      "drives",
      "users",
      "roles",
      "keys",
      "usage",
      "events",
      "scrub",
    ],
    credentials: "keys",
    check: async (login) => {
      const [accessKey, secret] =
        "access_key" in login
          ? [login.access_key, login.secret_key]
          : [login.username, login.password];
      const isRoot = accessKey === config.access_key_id;
      const found = isRoot ? undefined : findUserKey(accessKey, directory);
      // An unknown key takes as long as a wrong secret.
      const wanted = isRoot ? rootSecret : toLiveSecret(found?.secret ?? randomUUID());
      if (!wanted.accepts(secret)) {
        throw createUnauthorizedError("The key or the secret is wrong.");
      }
      const name = found?.owner.kind === "user" ? found.owner.name : accessKey;
      const caller: Caller = isRoot ? { kind: "operator" } : callers.fromUserKey(accessKey, name);
      return { caller, user: { id: accessKey, name }, credential: { kind: "caller", caller } };
    },
  };
}
