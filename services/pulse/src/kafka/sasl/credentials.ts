// Users with passwords, known when the broker starts.
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";
import type { Principal } from "../principal.ts";
import type { CredentialStore, ScramCredential } from "./mechanism.ts";
import { deriveScramCredential, type ScramMechanism } from "./scram.ts";

/** One user. The password is not kept. */
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

/** A store of the given users; a name that is there twice is a mistake of the caller. */
export function createPasswordStore(users: readonly PasswordUser[]): CredentialStore {
  const key = randomBytes(32);
  const digestOf = (password: string) => createHmac("sha256", key).update(password).digest();
  const entries = new Map<string, Entry>();
  for (const { name, password, tenant } of users) {
    if (entries.has(name)) throw new TypeError(`the user ${name} is there twice`);
    entries.set(name, {
      principal: { name, tenant },
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
