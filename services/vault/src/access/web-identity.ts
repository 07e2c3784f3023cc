// Exchanges a user's token for a session key: AssumeRoleWithWebIdentity of the STS API.
import {
  findSessionEnd,
  includesScope,
  type Claims,
  toRevocable,
  type TokenVerifier,
  type Verdict,
} from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import { S3Error } from "../model/s3-error.ts";
import { STORAGE_SCOPES } from "./authorizer.ts";
import type { TenantBudgets } from "./budget.ts";
import type { Directory } from "./directory.ts";
import { checkPolicyActions, compilePolicy } from "./policy.ts";
import type { RoleSessions, SessionKey } from "./role-sessions.ts";

/** Limits of DurationSeconds, and its default. */
export const DURATION_SECONDS = { min: 900, max: 43_200, default: 3_600 } as const;

/** `arn:aws:iam:::role/NAME`, or with the id of the account. */
const ROLE_ARN = /^arn:(?:aws|store):iam::(\d{12})?:role\/([A-Za-z0-9_+=,.@-]{1,64})$/;

/** The session of a new key. */
interface SessionRequest {
  sessionName: string;
  durationSeconds: number;
  /** A policy in JSON that limits the key further. */
  policy: string | undefined;
}

/** Validated parameters of a request. */
export interface WebIdentityRequest extends SessionRequest {
  token: string;
  roleArn: string;
}

/** The session of a new key, in a role of the token. */
export interface RoleRequest extends SessionRequest {
  role: string;
}

/** The result of a request. */
export interface AssumedRole {
  key: SessionKey;
  /** `arn:aws:sts::ACCOUNT:assumed-role/ROLE/SESSION` */
  arn: string;
  /** `ROLE:SESSION` */
  id: string;
  subject: string;
  audience: string;
  issuer: string;
}

/** Options of {@link WebIdentity}. */
export interface WebIdentityOptions {
  /** Undefined if no issuer is configured. */
  tokens: TokenVerifier | undefined;
  directory: Directory;
  sessions: RoleSessions;
  /** Limits the keys that a user requests. */
  budgets: TenantBudgets;
  clock: Clock;
  accountId: string;
}

/** Issues session keys. */
export class WebIdentity {
  readonly #options: WebIdentityOptions;

  constructor(options: WebIdentityOptions) {
    this.#options = options;
  }

  /**
   * Issues a key for a role that the token has. Throws S3Errors with the codes of STS. The key ends with the session of the
   * token, or with the token itself if it names no session.
   */
  async assumeRole(request: WebIdentityRequest): Promise<AssumedRole> {
    const role = this.#readRole(request.roleArn);
    return this.issue(await this.#verify(request.token), { ...request, role });
  }

  /** As `assumeRole`, for a token that is already verified. */
  async issue(claims: Claims, request: RoleRequest): Promise<AssumedRole> {
    const { sessions, accountId } = this.#options;
    const { role } = request;
    const { iss: issuer = "", sub, username, tenant } = claims;
    if (sub === undefined) throw new S3Error("InvalidIdentityToken", "The token has no subject.");
    this.#takeBudget(`${issuer} ${sub}`);
    const scopes = this.#requireRole(claims, role);
    const expiresMs = this.#findEnd(claims, request.durationSeconds);
    const policy = request.policy === undefined ? undefined : readPolicy(request.policy);
    if (sessions.isFull)
      throw new S3Error("ServiceUnavailable", "There are too many session keys.");
    const key = await sessions.issue({
      role,
      sessionName: request.sessionName,
      sub,
      ...(username === undefined ? {} : { username }),
      ...(tenant === undefined ? {} : { tenant }),
      issuer,
      scopes,
      token: toRevocable(claims),
      ...(policy === undefined ? {} : { policy }),
      expiresMs,
    });
    if (key === undefined) throw new S3Error("IDPRejectedClaim");
    return {
      key,
      arn: `arn:aws:sts::${accountId}:assumed-role/${role}/${request.sessionName}`,
      id: `${role}:${request.sessionName}`,
      subject: sub,
      audience: claims.aud?.join(" ") ?? "",
      issuer,
    };
  }

  #readRole(arn: string): string {
    const [, accountId = this.#options.accountId, role] = ROLE_ARN.exec(arn) ?? [];
    if (role !== undefined && accountId === this.#options.accountId) return role;
    throw new S3Error("ValidationError", "RoleArn must have the form arn:aws:iam:::role/NAME.");
  }

  async #verify(token: string): Promise<Claims> {
    const { tokens } = this.#options;
    if (tokens === undefined) {
      throw new S3Error("InvalidIdentityToken", "No identity provider is configured.");
    }
    const verdict = await tokens.verify(token);
    if (verdict.kind === "user") return verdict.claims;
    throw verdict.kind === "refused" ? toError(verdict) : new S3Error("InvalidIdentityToken");
  }

  #takeBudget(user: string): void {
    const waitSeconds = this.#options.budgets.take(user);
    if (waitSeconds === 0) return;
    throw new S3Error("Throttling", { headers: [["Retry-After", String(waitSeconds)]] });
  }

  // The holder of the token learns nothing new from these messages: the token lists its roles and scopes.
  #requireRole({ roles, scope }: Claims, role: string): string[] {
    if (!roles.includes(role)) {
      throw new S3Error("AccessDenied", `The token does not have the role ${role}.`);
    }
    const scopes = Object.values(STORAGE_SCOPES).filter((name) => includesScope(scope, name));
    if (scopes.length === 0) {
      throw new S3Error(
        "AccessDenied",
        "The token has neither the scope vault:read nor vault:write.",
      );
    }
    const policies = this.#options.directory.findRolePolicies(role) ?? [];
    if (policies.length === 0) {
      throw new S3Error("AccessDenied", `The role ${role} has no policy in storage.`);
    }
    return scopes;
  }

  #findEnd(claims: Claims, durationSeconds: number): number {
    const nowSeconds = Math.floor(this.#options.clock.now() / 1_000);
    const end = Math.min(nowSeconds + durationSeconds, findSessionEnd(claims) ?? claims.exp);
    if (end <= nowSeconds) throw new S3Error("ExpiredTokenException");
    return end * 1_000;
  }
}

function toError({ code, detail }: Extract<Verdict, { kind: "refused" }>): S3Error {
  switch (code) {
    case "expired":
      return new S3Error("ExpiredTokenException");
    case "keys_unavailable":
      return new S3Error("IDPCommunicationError");
    case "revoked":
      return new S3Error("IDPRejectedClaim");
    default:
      return new S3Error("InvalidIdentityToken", detail);
  }
}

function readPolicy(text: string): Record<string, unknown> {
  try {
    const document = JSON.parse(text) as Record<string, unknown>;
    compilePolicy(document, undefined);
    checkPolicyActions(document, undefined);
    return document;
  } catch (error) {
    const detail = error instanceof Error ? error.message : "it is not JSON";
    throw new S3Error("MalformedPolicyDocument", { message: detail, cause: error });
  }
}
