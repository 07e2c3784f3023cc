// Users with passwords from the configuration.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import { ALL_RIGHTS } from "../../topic/rights.ts";
import type { Principal } from "../../user/principal.ts";
import type { CredentialStore, ScramCredential } from "./mechanism.ts";
import { deriveScramCredential, type ScramMechanism } from "./scram.ts";

/** A user. The password is not stored. */
export interface PasswordUser {
  name: string;
  password: string;
  tenant: string;
}

interface Entry {
  principal: Principal;
  digest: Buffer;
  scram: Record<ScramMechanism, ScramCredential>;
}

/** Creates a store of the given users. Throws for duplicate names. */
export function createPasswordStore(users: readonly PasswordUser[]): CredentialStore {
  const key = randomBytes(32);
  const digestOf = (password: string) => createHmac("sha256", key).update(password).digest();
  const entries = new Map<string, Entry>();
  for (const { name, password, tenant } of users) {
    if (entries.has(name)) throw new TypeError(`duplicate user ${name}`);
    entries.set(name, {
      principal: { name, tenant, rights: ALL_RIGHTS },
      digest: digestOf(password),
      scram: {
        "SCRAM-SHA-256": deriveScramCredential("SCRAM-SHA-256", password),
        "SCRAM-SHA-512": deriveScramCredential("SCRAM-SHA-512", password),
      },
    });
  }
  const nobody = randomBytes(32);
  return {
    async verifyPassword(user, password) {
      const entry = entries.get(user);
      const isRight = timingSafeEqual(digestOf(password), entry?.digest ?? nobody);
      return isRight ? entry?.principal : undefined;
    },
    findScram(user, mechanism) {
      const entry = entries.get(user);
      if (entry === undefined) return undefined;
      return { credential: entry.scram[mechanism], principal: entry.principal };
    },
    hasUser: (user) => entries.has(user),
  };
}
