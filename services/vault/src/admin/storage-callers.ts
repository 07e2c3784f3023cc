// The identities that callers of the admin API have in storage: they may do through it what they may do with S3.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import { hasScope, needScope, type Caller, type Claims } from "@platform/kernel/identity";
import type { Caller as StorageCaller } from "../access/authorizer.ts";
import type { Directory } from "../access/directory.ts";
import { findUserKey, listRoleCallers } from "../access/known-callers.ts";

/** The scope that grants access to the whole admin API. */
export const ADMIN_SCOPE = "vault:admin";

/** Throws 403 unless the caller administers storage. */
export const requireAdmin = needScope(ADMIN_SCOPE);

/** Finds the identities. */
export class StorageCallers {
  readonly #directory: Directory;
  readonly #root: StorageCaller;
  /** Identities of callers with a key of storage, found again for each request: keys can be disabled. */
  readonly #byKey = new WeakMap<Caller, () => StorageCaller | undefined>();

  constructor(directory: Directory, rootKey: string) {
    this.#directory = directory;
    this.#root = { kind: "root", accessKey: rootKey };
  }

  /** The caller of the admin API for a signed request. */
  fromSignature(owner: StorageCaller): Caller {
    if (owner.kind === "root") return { kind: "operator" };
    if (owner.kind === "user") return this.fromUserKey(owner.accessKey, owner.name);
    const name = owner.kind === "session" ? (owner.session.username ?? owner.session.sub) : "";
    return this.#remember(name, () => owner);
  }

  /** The caller of the admin API for the holder of a user's key. */
  fromUserKey(accessKey: string, name: string): Caller {
    return this.#remember(name, () => findUserKey(accessKey, this.#directory)?.owner);
  }

  /** The identities of a caller, at least one. Throws 401 if its key was disabled, 403 if storage has no role of its token. */
  list(caller: Caller): readonly StorageCaller[] {
    const findOwner = this.#byKey.get(caller);
    if (findOwner !== undefined) {
      const owner = findOwner();
      if (owner !== undefined) return [owner];
      throw createUnauthorizedError("The access key was disabled or deleted.");
    }
    if (hasScope(caller, ADMIN_SCOPE)) return [this.#root];
    const roles = caller.kind === "user" ? listRoleCallers(caller.claims, this.#directory) : [];
    if (roles.length > 0) return roles;
    throw new PlatformError(
      "forbidden",
      "The token has no role with a policy in storage, or neither the scope vault:read nor vault:write.",
    );
  }

  #remember(name: string, findOwner: () => StorageCaller | undefined): Caller {
    const claims: Claims = {
      sub: name,
      username: name,
      exp: Number.POSITIVE_INFINITY,
      scope: [],
      roles: [],
      all: {},
    };
    const caller: Caller = { kind: "user", claims };
    this.#byKey.set(caller, findOwner);
    return caller;
  }
}
