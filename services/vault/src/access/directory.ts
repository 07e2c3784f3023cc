// Users, roles and access keys, stored in one document that is replaced as a whole. Secrets are encrypted.
import { randomBytes } from "node:crypto";
import { PlatformError } from "@platform/kernel/errors";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import { DirectoryFile, type DirectoryDamage } from "./directory-file.ts";
import { checkPolicyActions, compilePolicy, type Policy } from "./policy.ts";
import { isSessionKey } from "./role-sessions.ts";
import type { SecretBox } from "./secret-box.ts";

const USERS_MAX = 10_000;
const ROLES_MAX = 1_000;
const KEYS_MAX = 20_000;
const KEYS_PER_USER_MAX = 100;
/** Of a user or a role. */
const POLICIES_MAX = 20;
const KEY_ALPHABET = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** The name of a user or a role, valid in ARNs. */
export const userNameSchema = z.string().regex(/^[A-Za-z0-9_+=,.@-]{1,64}$/, {
  error: "expected 1 to 64 letters, digits or + = , . @ _ -",
});
/** The id of an access key. */
export const accessKeySchema = z.string().regex(/^[A-Za-z0-9_.-]{3,128}$/, {
  error: "expected 3 to 128 letters, digits or . _ -",
});
/** A secret that a caller chooses. */
export const secretKeySchema = z.string().regex(/^[\x21-\x7e]{8,128}$/, {
  error: "expected 8 to 128 visible ASCII characters",
});

const userSchema = z.strictObject({
  name: userNameSchema,
  enabled: z.boolean(),
  /** By name, as put. */
  policies: z.record(z.string(), z.record(z.string(), z.unknown())),
  /** Namespaces that its requests may be charged to. */
  namespaces: z.array(z.string()),
  createdMs: z.number(),
});
const roleSchema = z.strictObject({
  name: userNameSchema,
  /** By name, as put. */
  policies: z.record(z.string(), z.record(z.string(), z.unknown())),
  createdMs: z.number(),
});
const keySchema = z.strictObject({
  accessKey: accessKeySchema,
  user: userNameSchema,
  sealedSecret: z.string(),
  enabled: z.boolean(),
  description: z.string(),
  createdMs: z.number(),
  /** Not accepted from then on, epoch ms. */
  expiresMs: z.number().optional(),
});
const tablesSchema = z.strictObject({
  users: z.array(userSchema),
  roles: z.array(roleSchema).default([]),
  keys: z.array(keySchema),
});

export type UserRecord = z.output<typeof userSchema>;
/** A role, which holders of session keys have. */
export type RoleRecord = z.output<typeof roleSchema>;
/** A key without its secret. */
export type KeyRecord = Omit<z.output<typeof keySchema>, "sealedSecret">;

/** The owner and the secret of a key. */
export interface ActiveKey {
  secret: string;
  user: UserRecord;
  policies: readonly Policy[];
  /** Epoch ms; `Infinity` without an end. */
  expiresMs: number;
}

/** The tables of the document. */
interface Tables {
  users: Map<string, UserRecord>;
  roles: Map<string, RoleRecord>;
  keys: Map<string, z.output<typeof keySchema>>;
}

/** All users, roles and keys of a store. Changes are on disk before they take effect. */
export class Directory {
  readonly #file: DirectoryFile<z.output<typeof tablesSchema>>;
  readonly #box: SecretBox;
  readonly #clock: Clock;
  readonly #rootKey: string;
  #users: Tables["users"] = new Map();
  #roles: Tables["roles"] = new Map();
  #keys: Tables["keys"] = new Map();
  /** Compiled policies of users. */
  #userPolicies = new Map<string, readonly Policy[]>();
  /** Compiled policies of roles. */
  #rolePolicies = new Map<string, readonly Policy[]>();
  /** Enabled keys of enabled users, ready for requests. */
  #active = new Map<string, ActiveKey>();

  /**
   * Reads the document, and restores a missing or damaged copy of it. Throws an Error if no copy is intact, or the secrets
   * are those of another master key.
   */
  constructor(options: {
    path: string;
    box: SecretBox;
    clock: Clock;
    rootKey: string;
    /** Called for each copy that was damaged; the other one was used. */
    onDamage?: (damage: DirectoryDamage) => void;
  }) {
    this.#file = new DirectoryFile(options.path, tablesSchema);
    this.#box = options.box;
    this.#clock = options.clock;
    this.#rootKey = options.rootKey;
    const { tables, damages } = this.#file.read();
    for (const damage of damages) options.onDamage?.(damage);
    for (const user of tables?.users ?? []) this.#users.set(user.name, user);
    for (const role of tables?.roles ?? []) this.#roles.set(role.name, role);
    for (const key of tables?.keys ?? []) this.#keys.set(key.accessKey, key);
    this.#activate();
  }

  /** The key that a request names; `undefined` if it is unknown, disabled or expired. */
  findKey(accessKey: string): ActiveKey | undefined {
    const key = this.#active.get(accessKey);
    if (key === undefined || key.expiresMs === Infinity) return key;
    return this.#clock.now() < key.expiresMs ? key : undefined;
  }

  /** An enabled user with its policies; `undefined` if it is unknown or disabled. */
  findUser(name: string): { user: UserRecord; policies: readonly Policy[] } | undefined {
    const user = this.#users.get(name);
    if (user?.enabled !== true) return undefined;
    return { user, policies: this.#userPolicies.get(name) ?? [] };
  }

  /** The policies of a role; `undefined` if it does not exist. */
  findRolePolicies(name: string): readonly Policy[] | undefined {
    return this.#rolePolicies.get(name);
  }

  listUsers(): UserRecord[] {
    return [...this.#users.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  listRoles(): RoleRecord[] {
    return [...this.#roles.values()].sort((a, b) => (a.name < b.name ? -1 : 1));
  }

  listKeys(user?: string): KeyRecord[] {
    return [...this.#keys.values()]
      .filter((key) => user === undefined || key.user === user)
      .map(hideSecret)
      .sort((a, b) => (a.accessKey < b.accessKey ? -1 : 1));
  }

  hasUser(name: string): boolean {
    return this.#users.has(name);
  }

  getUser(name: string): UserRecord {
    const user = this.#users.get(name);
    if (user === undefined)
      throw new PlatformError("not_found", `The user ${name} does not exist.`);
    return user;
  }

  /** Creates or replaces a user. Throws MalformedPolicy for an invalid policy. */
  putUser(user: Omit<UserRecord, "createdMs">): UserRecord {
    const before = this.#users.get(user.name);
    if (before === undefined && this.#users.size >= USERS_MAX) {
      throw new PlatformError("conflict", `There are ${USERS_MAX} users already.`);
    }
    checkPolicies(user.policies);
    const record = { ...user, createdMs: before?.createdMs ?? this.#clock.now() };
    this.#change(({ users }) => users.set(user.name, record));
    return record;
  }

  getRole(name: string): RoleRecord {
    const role = this.#roles.get(name);
    if (role === undefined)
      throw new PlatformError("not_found", `The role ${name} does not exist.`);
    return role;
  }

  /** Creates or replaces a role; live session keys follow immediately. Throws MalformedPolicy for an invalid policy. */
  putRole(role: Omit<RoleRecord, "createdMs">): RoleRecord {
    const before = this.#roles.get(role.name);
    if (before === undefined && this.#roles.size >= ROLES_MAX) {
      throw new PlatformError("conflict", `There are ${ROLES_MAX} roles already.`);
    }
    checkPolicies(role.policies);
    const record = { ...role, createdMs: before?.createdMs ?? this.#clock.now() };
    this.#change(({ roles }) => roles.set(role.name, record));
    return record;
  }

  /** Deletes a role; its session keys are no longer accepted. */
  deleteRole(name: string): void {
    this.getRole(name);
    this.#change(({ roles }) => roles.delete(name));
  }

  /** Deletes a user and its keys. */
  deleteUser(name: string): void {
    this.getUser(name);
    this.#change(({ users, keys }) => {
      users.delete(name);
      for (const key of keys.values()) if (key.user === name) keys.delete(key.accessKey);
    });
  }

  /** Creates a key. This is the only time that its secret is returned. */
  createKey(request: {
    user: string;
    accessKey?: string | undefined;
    secretKey?: string | undefined;
    description?: string | undefined;
  }): KeyRecord & { secretKey: string } {
    this.getUser(request.user);
    if (this.#keys.size >= KEYS_MAX || this.listKeys(request.user).length >= KEYS_PER_USER_MAX) {
      throw new PlatformError("conflict", "There are too many keys already.");
    }
    const accessKey = request.accessKey ?? createAccessKey();
    // The id of the root key always means root.
    if (accessKey === this.#rootKey || this.#keys.has(accessKey) || isSessionKey(accessKey)) {
      throw new PlatformError("conflict", `The access key ${accessKey} exists already.`);
    }
    const secretKey = request.secretKey ?? randomBytes(30).toString("base64url");
    const record = {
      accessKey,
      user: request.user,
      sealedSecret: this.#box.seal(secretKey, accessKey),
      enabled: true,
      description: request.description ?? "",
      createdMs: this.#clock.now(),
    };
    this.#change(({ keys }) => keys.set(accessKey, record));
    return { ...hideSecret(record), secretKey };
  }

  /** Enables or disables a key, or changes its description or its end; null removes the end. */
  updateKey(
    accessKey: string,
    change: {
      enabled?: boolean | undefined;
      description?: string | undefined;
      expiresMs?: number | null | undefined;
    },
  ): KeyRecord {
    const { expiresMs: before, ...key } = this.#getKey(accessKey);
    const { expiresMs: after = before } = change;
    const record = {
      ...key,
      enabled: change.enabled ?? key.enabled,
      description: change.description ?? key.description,
      ...(typeof after === "number" ? { expiresMs: after } : {}),
    };
    this.#change(({ keys }) => keys.set(accessKey, record));
    return hideSecret(record);
  }

  deleteKey(accessKey: string): void {
    this.#getKey(accessKey);
    this.#change(({ keys }) => keys.delete(accessKey));
  }

  /** Seals all secrets with the current key of the box. */
  renewSecrets(): void {
    const renewed = [...this.#keys.values()].flatMap((key) => {
      const sealedSecret = this.#box.renew(key.sealedSecret, key.accessKey);
      return sealedSecret === undefined ? [] : [{ ...key, sealedSecret }];
    });
    if (renewed.length === 0) return;
    this.#change(({ keys }) => {
      for (const key of renewed) keys.set(key.accessKey, key);
    });
  }

  #getKey(accessKey: string): z.output<typeof keySchema> {
    const key = this.#keys.get(accessKey);
    if (key === undefined)
      throw new PlatformError("not_found", `The access key ${accessKey} does not exist.`);
    return key;
  }

  #change(edit: (tables: Tables) => void): void {
    const users = new Map(this.#users);
    const roles = new Map(this.#roles);
    const keys = new Map(this.#keys);
    edit({ users, roles, keys });
    this.#file.write({
      users: [...users.values()],
      roles: [...roles.values()],
      keys: [...keys.values()],
    });
    this.#users = users;
    this.#roles = roles;
    this.#keys = keys;
    this.#activate();
  }

  #activate(): void {
    const policies = new Map(
      Array.from(this.#users.values(), (user) => [user.name, compileAll(user.policies)]),
    );
    this.#rolePolicies = new Map(
      Array.from(this.#roles.values(), (role) => [role.name, compileAll(role.policies)]),
    );
    this.#userPolicies = policies;
    const active = new Map<string, ActiveKey>();
    for (const key of this.#keys.values()) {
      const user = this.#users.get(key.user);
      if (!key.enabled || user === undefined || !user.enabled) continue;
      active.set(key.accessKey, {
        secret: this.#openSecret(key),
        user,
        policies: policies.get(key.user) ?? [],
        expiresMs: key.expiresMs ?? Infinity,
      });
    }
    this.#active = active;
  }

  #openSecret({ sealedSecret, accessKey }: z.output<typeof keySchema>): string {
    try {
      return this.#box.open(sealedSecret, accessKey);
    } catch (cause) {
      const remedy = "put access/master.key back from a backup, or set PLATFORM_VAULT_MASTER_KEY";
      throw new Error(`the secret of the key ${accessKey} needs another master key: ${remedy}`, {
        cause,
      });
    }
  }
}

/**
 * Damaged copies of the users, roles and keys at `path`; with `isRepair` they are restored from the other copy. Throws an
 * Error if no copy is intact.
 */
export function checkDirectory(path: string, isRepair: boolean): DirectoryDamage[] {
  const file = new DirectoryFile(path, tablesSchema);
  return isRepair ? file.read().damages : file.inspect().damages;
}

type PolicyDocuments = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

function checkPolicies(policies: PolicyDocuments): void {
  const documents = Object.values(policies);
  if (documents.length > POLICIES_MAX) {
    throw new PlatformError("validation_failed", `There can be at most ${POLICIES_MAX} policies.`);
  }
  for (const document of documents) {
    compilePolicy(document, undefined);
    checkPolicyActions(document, undefined);
  }
}

function compileAll(policies: PolicyDocuments): readonly Policy[] {
  return Object.values(policies).map((document) => compilePolicy(document, undefined));
}

function hideSecret(key: z.output<typeof keySchema>): KeyRecord {
  const { sealedSecret: _sealedSecret, ...record } = key;
  return record;
}

function createAccessKey(): string {
  return Array.from(randomBytes(20), (byte) => KEY_ALPHABET[byte & 31]).join("");
}
