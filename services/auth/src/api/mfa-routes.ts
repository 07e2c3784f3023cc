// Routes of second factors: set-up, verification, step-up, removal, backup codes, policies.
import { PlatformError } from "@platform/kernel/errors";
import { createValidationError, defineRoute, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import type { Factors } from "../factor/factors.ts";
import type { MfaPolicies } from "../factor/policies.ts";
import type { OAuth } from "../oauth/oauth.ts";
import type { SecondFactors } from "../sign-in/second-factors.ts";
import type { SecurityNotices } from "../sign-in/security-notices.ts";
import type { SignIn } from "../sign-in/sign-in.ts";
import { readEmail } from "../user/username.ts";
import type { Cookies } from "../web/cookies.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import { needPermission, createNoSession, type Identification } from "./principal.ts";
import {
  codeAnswer,
  factorSetup,
  factorsAnswer,
  policiesAnswer,
  policyAnswer,
  sentAnswer,
  stepUpAnswer,
} from "./responses.ts";
import { answerOutcome, answerSignedIn } from "./signed-in.ts";

const id = z.string().min(1).max(64);
const mfaToken = z.string().min(1).max(128);
const code = z.string().min(1).max(32);
const scope = z.enum(["group", "role", "client"]);
const subject = z.string().min(1).max(255);

/** Options of these routes. */
export interface MfaRouteOptions {
  identification: Identification;
  factors: Factors;
  policies: MfaPolicies;
  oauth: OAuth;
  secondFactors: SecondFactors;
  signIn: SignIn;
  notices: SecurityNotices;
  audit: AuditLog;
  cookies: Cookies;
}

export function createMfaRoutes(options: MfaRouteOptions): ApiRoute[] {
  return [
    ...createSignInRoutes(options),
    ...createFactorRoutes(options),
    ...createPolicyRoutes(options),
  ];
}

function createSignInRoutes(options: MfaRouteOptions): ApiRoute[] {
  const { identification, factors, secondFactors, signIn, cookies } = options;
  // These routes accept an mfa_token or a session and check it themselves.
  const common = { tag: "Second factors", access: "public" } as const;
  return [
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/mfa/setup",
      summary: "Start to set up a factor; it becomes active after its first valid code",
      body: z.strictObject({
        type: z.enum(["totp", "email", "sms"]),
        name: z.string().min(1).max(64).optional(),
        email: z.string().max(254).optional(),
        phone: z
          .string()
          .regex(/^\+[1-9]\d{6,14}$/, "a number such as +4915112345678")
          .optional(),
        mfa_token: mfaToken.optional(),
      }),
      problems: {
        409: "`channel_unavailable`: no mail service, or no gateway for SMS, is configured",
        422: "`recipient_rejected`: the address or number does not accept messages",
      },
      answer: factorSetup,
      handle: async (exchange) => {
        const { body } = exchange;
        const account =
          body.mfa_token === undefined
            ? (await identification.identifyStrong(exchange)).account
            : await secondFactors.findEnrolling(body.mfa_token);
        const name =
          body.name ?? { totp: "Authenticator app", email: "Email", sms: "SMS" }[body.type];
        if (body.type === "totp") return factors.setUpTotp(account, name);
        const to =
          body.type === "email" ? readEmail(body.email ?? account.email ?? "") : body.phone;
        if (to === undefined) {
          const path = body.type === "email" ? "email" : "phone";
          throw createValidationError([
            { in: "body", path, message: "the address for codes is required" },
          ]);
        }
        return factors.setUpSent(account, body.type, to, name);
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/mfa/send",
      summary: "Send a code to an email or SMS factor",
      body: z.strictObject({ mfa_token: mfaToken, factor_id: id }),
      answer: sentAnswer,
      handle: async ({ body }) => ({
        sent_to: await secondFactors.send(body.mfa_token, body.factor_id),
      }),
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/mfa/verify",
      summary: "Verify a code: with mfa_token to sign in, with factor_id to confirm a new factor",
      body: z.strictObject({
        mfa_token: mfaToken.optional(),
        factor_id: id.optional(),
        code: code.optional(),
        password: z.string().min(1).max(1024).optional(),
      }),
      answer: codeAnswer,
      handle: async (exchange) => {
        const { body, answerHeaders } = exchange;
        const origin = identification.readOrigin(exchange);
        if (body.mfa_token !== undefined) {
          const proof = {
            kind: "pending",
            mfaToken: body.mfa_token,
            code: body.code,
            password: body.password,
            factorId: body.factor_id,
            deviceMark: cookies.read(exchange.headers, "platform_device"),
          } as const;
          const outcome = await signIn.signIn(proof, origin);
          return answerOutcome(outcome, answerHeaders, identification, cookies);
        }
        if (body.factor_id === undefined || body.code === undefined) {
          const missing = {
            in: "body",
            path: "mfa_token",
            message: "required unless factor_id and code are given",
          } as const;
          throw createValidationError([missing]);
        }
        const { account, session, scope: granted } = await identification.identifyStrong(exchange);
        if (session === undefined) throw createNoSession();
        const { kind, amr } = await factors.confirm(account.id, body.factor_id, body.code);
        await options.audit.record({
          action: "mfa.enrol",
          actor: `user:${account.id}`,
          target: `factor:${body.factor_id}`,
          ip: origin.ip,
          userAgent: origin.userAgent,
          detail: { kind },
        });
        options.notices.tell(account, "mfa.enrol");
        const elevated = await signIn.completeEnrolment(account, session.id, amr, {
          scope: granted?.join(" "),
        });
        return {
          verified: true,
          ...answerSignedIn(elevated, answerHeaders, identification, cookies),
        };
      },
    }),
  ];
}

function createFactorRoutes(options: MfaRouteOptions): ApiRoute[] {
  const { identification, factors, secondFactors, notices } = options;
  const record = createAuditRecorder(options);
  const tag = "Second factors";
  return [
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/auth/mfa/step-up",
      summary: "Start a stronger or fresher sign-in (RFC 9470)",
      body: z.strictObject({
        acr_values: z.string().max(256).default("2"),
        max_age: z.int().min(0).max(31_536_000).optional(),
      }),
      problems: { 409: "There is no second factor" },
      answer: stepUpAnswer,
      requires: "caller",
      handle: async (exchange) => {
        const { account, session } = identification.requireUser(exchange);
        if (session === undefined) throw createNoSession();
        const { acr_values: acrValues, max_age: maxAge } = exchange.body;
        const wanted = {
          acrValues: acrValues.split(" "),
          maxAgeMs: maxAge === undefined ? undefined : maxAge * 1000,
        };
        const challenge = await secondFactors.stepUp(account, session, wanted);
        return challenge === undefined ? { satisfied: true } : { satisfied: false, challenge };
      },
    }),
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/auth/mfa/factors",
      summary: "The user's factors",
      answer: factorsAnswer,
      requires: "caller",
      handle: async (exchange) => {
        const { account } = identification.requireUser(exchange);
        return { factors: await factors.list(account.id) };
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: "/api/v1/auth/mfa/factors/{id}",
      summary: "Remove a factor",
      params: z.object({ id }),
      requires: "caller",
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.requireFreshUser(exchange);
        await identification.requireSecondFactor(principal);
        const { account } = principal;
        if (!(await factors.remove(account.id, exchange.params.id))) {
          throw new PlatformError("not_found", "There is no such factor.");
        }
        await record(exchange, principal, "mfa.remove", `factor:${exchange.params.id}`);
        notices.tell(account, "mfa.remove");
        return undefined;
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path: "/api/v1/auth/mfa/backup-codes",
      summary: "Replace the backup codes",
      answer: z.object({ backup_codes: z.array(z.string()) }),
      requires: "caller",
      handle: async (exchange) => {
        const principal = identification.requireFreshUser(exchange);
        await identification.requireSecondFactor(principal);
        const { account } = principal;
        const codes = await factors.renewBackupCodes(account.id);
        await record(exchange, principal, "mfa.backup_codes", `user:${account.id}`);
        notices.tell(account, "mfa.backup_codes");
        return { backup_codes: codes };
      },
    }),
  ];
}

function createPolicyRoutes(options: MfaRouteOptions): ApiRoute[] {
  const { identification, policies, oauth } = options;
  const record = createAuditRecorder(options);
  const tag = "Second factors";
  const path = "/api/v1/auth/mfa/policies";
  return [
    defineRoute({
      tag,
      method: "GET",
      path,
      summary: "Policies that require a second factor",
      answer: policiesAnswer,
      access: needPermission("rbac:read"),
      handle: async (exchange) => {
        identification.require(exchange);
        return { policies: await policies.list() };
      },
    }),
    defineRoute({
      tag,
      method: "POST",
      path,
      summary: "Create or replace a policy",
      status: 201,
      body: z.strictObject({ scope, subject, required: z.boolean() }),
      answer: policyAnswer,
      access: needPermission("rbac:write"),
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { scope: kind, subject: name } = exchange.body;
        if (kind === "client") await oauth.clients.requireManageable(name, principal.rights);
        await policies.put(exchange.body, principal.rights);
        await record(
          exchange,
          principal,
          "mfa.policy",
          `${exchange.body.scope}:${exchange.body.subject}`,
          { required: exchange.body.required },
        );
        return exchange.body;
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path: `${path}/{scope}/{subject}`,
      summary: "Remove a policy",
      params: z.object({ scope, subject }),
      access: needPermission("rbac:write"),
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.require(exchange);
        const { scope: kind, subject: name } = exchange.params;
        if (kind === "client") await oauth.clients.requireManageable(name, principal.rights);
        if (!(await policies.delete(kind, name, principal.rights))) {
          throw new PlatformError("not_found", "There is no such policy.");
        }
        await record(exchange, principal, "mfa.policy.remove", `${kind}:${name}`);
        return undefined;
      },
    }),
  ];
}
