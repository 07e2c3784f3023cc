// The web console of storage: sessions for the root key and for tokens with the admin scope or role.
import { createHash, timingSafeEqual } from "node:crypto";
import { ServiceConsole } from "@platform/console";
import { createUnauthorizedError } from "@platform/kernel/errors";
import type { Guard } from "@platform/kernel/http";
import type { Clock } from "@platform/kernel/time";
import { VERSION, type VaultConfig } from "../config.ts";

/** Creates the console. `guard` is that of the admin API. */
export function createConsole(options: {
  config: VaultConfig;
  guard: Guard;
  isTls: boolean;
  clock: Clock;
}): ServiceConsole {
  const { config, guard, isTls, clock } = options;
  const wantedKey = digest(config.access_key_id);
  const wantedSecret = digest(config.secret_access_key);
  return new ServiceConsole({
    id: "vault",
    version: VERSION,
    features: ["buckets", "users", "roles", "keys", "usage", "events", "scrub"],
    credentials: "keys",
    check: async (login) => {
      const [accessKey, secret] =
        "access_key" in login
          ? [login.access_key, login.secret_key]
          : [login.username, login.password];
      const isKey = timingSafeEqual(digest(accessKey), wantedKey);
      const isSecret = timingSafeEqual(digest(secret), wantedSecret);
      if (!isKey || !isSecret) throw createUnauthorizedError("The key or the secret is wrong.");
      const caller = { kind: "operator" } as const;
      return {
        caller,
        user: { id: accessKey, name: accessKey },
        credential: { kind: "caller", caller },
      };
    },
    guard,
    publicUrl: config.console_url,
    isTls,
    clock,
  });
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
