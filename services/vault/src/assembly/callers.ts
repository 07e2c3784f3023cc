// Identification of callers: signatures with the keys of root, users and sessions, and tokens of identity.
import { join } from "node:path";
import type { Service } from "@platform/chassis";
import type { TokenVerifier } from "@platform/kernel/identity";
import type { LiveSecret } from "@platform/kernel/secrets";
import { every } from "@platform/kernel/time";
import type { Caller } from "../access/authorizer.ts";
import { TenantBudgets } from "../access/budget.ts";
import type { Directory } from "../access/directory.ts";
import { findUserKey } from "../access/known-callers.ts";
import { isSessionKey, RoleSessions } from "../access/role-sessions.ts";
import { WebIdentity } from "../access/web-identity.ts";
import type { VaultConfig } from "../config.ts";
import { S3Error } from "../model/s3-error.ts";
import { type FindKey, SignatureVerifier } from "../s3/sigv4/index.ts";
import type { Storage } from "./storage.ts";

const SESSION_SWEEP_MS = 60_000;
/** Session keys of a user: programs renew them every 15 minutes at most. */
const SESSION_KEY_BUDGET = { ratePerSecond: 2, burst: 50 };

/** The parts that identify callers. */
export interface Callers {
  readonly verifier: SignatureVerifier<Caller>;
  readonly sessions: RoleSessions;
  /** Undefined if no issuer is configured. */
  readonly tokens: TokenVerifier | undefined;
  readonly webIdentity: WebIdentity;
  /** The secret of root's key. */
  readonly rootSecret: LiveSecret;
}

/** Creates the parts. Revoked tokens end the session keys that came from them. */
export function openCallers(
  config: VaultConfig,
  { clock, log, metrics, followed, verifier: tokens, lifecycle }: Service,
  { directory, box, account }: Storage,
): Callers {
  const sessions = new RoleSessions({
    path: join(config.data_dir, "access", "session-keys.journal"),
    box,
    clock,
    log,
    revocations: followed.revocations,
  });
  followed.onAdded(() => sessions.endRevoked());
  metrics.collect(sessions);
  const sweep = every(
    SESSION_SWEEP_MS,
    () => sessions.sweep(),
    (error) => log.error("dropping expired session keys failed", { error }),
  );
  lifecycle.onDrain("session keys", async () => {
    await sweep.stop();
    await sessions.close();
  });
  const webIdentity = new WebIdentity({
    tokens,
    directory,
    sessions,
    budgets: new TenantBudgets({ ...SESSION_KEY_BUDGET, clock }),
    clock,
    accountId: account.accountId,
  });
  const { access_key_id: rootKey, secret_access_key: value } = config;
  const rootSecret = lifecycle.followSecret("STORE_SECRET_ACCESS_KEY", value);
  const findKey = createKeyFinder(rootKey, rootSecret, directory, sessions);
  const verifier = new SignatureVerifier({ clock, findKey });
  return { verifier, sessions, tokens, webIdentity, rootSecret };
}

function createKeyFinder(
  rootKey: string,
  rootSecret: LiveSecret,
  directory: Directory,
  sessions: RoleSessions,
): FindKey<Caller> {
  const owner: Caller = { kind: "root", accessKey: rootKey };
  return (accessKey) => {
    if (accessKey === rootKey) {
      const [secret = "", ...formerSecrets] = rootSecret.list();
      return { secret, formerSecrets, owner };
    }
    if (isSessionKey(accessKey)) return findSessionKey(accessKey, directory, sessions);
    return findUserKey(accessKey, directory);
  };
}

// Clients renew their credentials after ExpiredToken, also if the key was ended or displaced by a newer one.
function findSessionKey(accessKey: string, directory: Directory, sessions: RoleSessions) {
  const found = sessions.find(accessKey);
  if (found === undefined) throw new S3Error("ExpiredToken");
  const { key, session, limit } = found;
  const { role } = session;
  const policies = directory.findRolePolicies(role) ?? [];
  const owner: Caller = { kind: "session", accessKey, role, policies, session, limit };
  return { secret: key.secret, sessionToken: key.sessionToken, owner };
}
