// Constructs stores, OAuth and sign-in from the database up.
import { availableParallelism } from "node:os";
import { createEgress } from "@platform/kernel/egress";
import { createIdSource } from "@platform/kernel/ids";
import type { Logger } from "@platform/kernel/log";
import type { Clock } from "@platform/kernel/time";
import { AuditLog } from "./audit/audit-log.ts";
import type { AuthConfig } from "./config.ts";
import type { AuthDatabase } from "./database/schema.ts";
import { Factors } from "./factor/factors.ts";
import { deriveCodeKey } from "./factor/one-time-code.ts";
import { Passkeys } from "./factor/passkeys.ts";
import { MfaPolicies } from "./factor/policies.ts";
import { OneTimeTokens } from "./guard/one-time-tokens.ts";
import { Throttle } from "./guard/throttle.ts";
import type { KeyRing } from "./key/key-ring.ts";
import type { LiveSecret, SecretBox } from "@platform/kernel/secrets";
import type { AuthMetrics } from "./metrics.ts";
import { Notifier } from "./notify/notifier.ts";
import { OAuth } from "./oauth/oauth.ts";
import type { OAuthPages } from "./oauth/provider/pages.ts";
import { PolicyStore } from "./rbac/policy-store.ts";
import { createRbac } from "./rbac/rights.ts";
import { Sessions } from "./session/sessions.ts";
import { SessionTokens } from "./session/token.ts";
import { CredentialVerifier } from "./sign-in/credential-verifier.ts";
import { Credentials } from "./sign-in/credentials.ts";
import { DeviceMarks } from "./sign-in/device-marks.ts";
import { OWASP_COST, PasswordHasher, type PasswordCost } from "./sign-in/password-hasher.ts";
import { PasswordPolicy } from "./sign-in/password-policy.ts";
import { Registrations } from "./sign-in/registrations.ts";
import { SecondFactors } from "./sign-in/second-factors.ts";
import { SecurityNotices } from "./sign-in/security-notices.ts";
import { SignIn } from "./sign-in/sign-in.ts";
import { Groups } from "./user/groups.ts";
import { Users } from "./user/users.ts";
import { Cookies } from "./web/cookies.ts";
import { SessionResolver } from "./web/session-resolver.ts";

/** Shared by all parts. */
export interface Foundation {
  config: AuthConfig;
  database: AuthDatabase;
  box: SecretBox;
  /** Must be started. */
  keys: KeyRing;
  clock: Clock;
  log: Logger;
  /** The secret of the installation: keys of tokens, links and cookies are derived from it. */
  secret: Buffer;
  /** Issuer and base of all links. */
  publicUrl: string;
}

/** The stores and the parts that only read them. */
export type Stores = ReturnType<typeof createStores>;

/** Creates the stores. */
export function createStores(foundation: Foundation) {
  const { config, database, clock, secret, publicUrl } = foundation;
  const ids = createIdSource({ clock });
  const rbac = createRbac(database);
  const policy = new PolicyStore(database, clock);
  const shared = { ...foundation, ids, rbac, policy };
  const users = new Users(shared);
  const sessions = new Sessions({
    ...shared,
    tokens: new SessionTokens(secret),
    idleMs: config.session_idle_ms,
    absoluteMs: config.session_absolute_ms,
  });
  const cookies = new Cookies(publicUrl);
  return {
    ...shared,
    users,
    groups: new Groups(shared),
    sessions,
    cookies,
    resolver: new SessionResolver({
      sessions,
      users,
      cookies,
      clock,
      sessionAbsoluteMs: config.session_absolute_ms,
    }),
    audit: new AuditLog(database, clock, secret),
    throttle: new Throttle(database, clock),
    oneTimeTokens: new OneTimeTokens(database, clock, secret),
    policies: new MfaPolicies(shared),
  };
}

/** Secrets that `platform credentials rotate` replaces while the service runs. */
export interface FollowedSecrets {
  /** Bearer token of services that follow the revocation feed. */
  feed: LiveSecret | undefined;
  /** Token at the mail service. */
  mail: LiveSecret | undefined;
  /** Secrets of the installation's clients, by client id. */
  clients: Map<string, LiveSecret>;
}

/** Starts the OAuth core on the stores. */
export function startOAuth(
  stores: Stores,
  { feed, clients }: FollowedSecrets,
  metrics: AuthMetrics,
  pages: OAuthPages,
): Promise<OAuth> {
  const { config, publicUrl, policies } = stores;
  return OAuth.start({
    ...stores,
    issuer: publicUrl,
    algorithm: config.jwt_algorithm,
    audience: config.audience,
    defaultTenant: config.default_tenant,
    feedToken: feed,
    providedSecrets: clients,
    pkce: config.pkce,
    egressFetch: createEgress({ allowedNetworks: config.egress_networks }),
    pages,
    needsSecondFactor: (userId, clientId) => policies.requires(userId, clientId),
    onTokenIssued: metrics.countToken,
  });
}

/** Names of the service, which passwords must not resemble. */
export function listServiceNames(config: AuthConfig, publicUrl: string): string[] {
  const { brand_name: name, mfa_totp_issuer: issuer } = config;
  return [...(name === undefined ? [] : [name]), issuer, new URL(publicUrl).hostname];
}

/** Everything that the API and the pages use. */
export type Domain = ReturnType<typeof createDomain>;

/** Creates the parts that sign users in and change credentials. */
export function createDomain(
  stores: Stores,
  oauth: OAuth,
  metrics: AuthMetrics,
  mailToken: LiveSecret | undefined,
  passwordCost: PasswordCost = OWASP_COST,
) {
  const { config, secret, publicUrl, log } = stores;
  const onUnsent = (error: unknown): void => log.error("sending a message failed", { error });
  const notifier = new Notifier({
    url: config.platform_notify_url,
    token: mailToken,
    from: config.mail_from,
  });
  const shared = {
    ...stores,
    ...metrics,
    oauth,
    notifier,
    notices: new SecurityNotices(notifier, onUnsent),
    hasher: new PasswordHasher({
      concurrency: config.password_hash_concurrency ?? availableParallelism(),
      waitingMax: config.password_hash_queue,
      registrationsWaitingMax: config.registration_hash_queue,
      cost: passwordCost,
    }),
    passwordPolicy: new PasswordPolicy(listServiceNames(config, publicUrl)),
    deviceMarks: new DeviceMarks(secret),
    registration: config.registration,
  };
  const passkeys = new Passkeys({ ...shared, rpName: config.brand_name ?? config.mfa_totp_issuer });
  const factors = new Factors({
    ...shared,
    codeKey: deriveCodeKey(secret),
    totpIssuer: config.mfa_totp_issuer,
  });
  const secondFactors = new SecondFactors({ ...shared, factors, passkeys });
  return {
    ...shared,
    passkeys,
    factors,
    secondFactors,
    hasFactor: (userId: string) => secondFactors.hasFactor(userId),
    signIn: new SignIn({
      ...shared,
      factors,
      secondFactors,
      verifier: new CredentialVerifier({ ...shared, passkeys }),
    }),
    credentials: new Credentials({ ...shared, onHiddenError: onUnsent }),
    registrations: new Registrations({
      ...shared,
      registrationsHourly: {
        perAddress: config.registrations_per_address_hourly,
        perNetwork: config.registrations_per_network_hourly,
      },
    }),
  };
}
