// Routes of users' own accounts: registration, sign-in and sign-out, password, address, recovery.
import { PlatformError } from "@platform/kernel/errors";
import { defineRoute, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import { PLATFORM_CLIENT_ID } from "../oauth/core/lifetimes.ts";
import type { OAuth } from "../oauth/oauth.ts";
import { formatTime } from "../session/sessions.ts";
import type { Credentials } from "../sign-in/credentials.ts";
import type { Registrations } from "../sign-in/registrations.ts";
import type { SignIn } from "../sign-in/sign-in.ts";
import { DEVICE_MARK_MS, type Cookies } from "../web/cookies.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import { nameActor, type Identification } from "./principal.ts";
import { grantsAnswer, sentAnswer, signedIn, userAnswer, whoAnswer } from "./responses.ts";
import { answerOutcome, showUser } from "./signed-in.ts";

const text = (max: number) => z.string().min(1).max(max);
/** The password policy rejects longer passwords with a message; this bounds the hashed input. */
const password = text(1024);
const token = text(256);

/** Options of these routes. */
export interface AccountRouteOptions {
  identification: Identification;
  signIn: SignIn;
  credentials: Credentials;
  registrations: Registrations;
  oauth: OAuth;
  audit: AuditLog;
  cookies: Cookies;
}

export function createAccountRoutes(options: AccountRouteOptions): ApiRoute[] {
  return [...createPublicRoutes(options), ...createOwnRoutes(options)];
}

function createPublicRoutes(options: AccountRouteOptions): ApiRoute[] {
  const { identification, signIn, credentials, registrations, cookies } = options;
  const common = { tag: "Accounts", access: "public" } as const;
  return [
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/register",
      summary:
        "Register an account; if mail is configured, its address is sent a verification link",
      status: 201,
      body: z.strictObject({
        username: text(256),
        password,
        email: text(254).optional(),
        name: text(256).optional(),
        invitation: token.optional(),
      }),
      problems: { 409: "The name is taken", 403: "Registration is not open" },
      answer: userAnswer,
      handle: async (exchange) => {
        const origin = identification.readOrigin(exchange);
        const account = await registrations.register(exchange.body, origin);
        await credentials.welcome(account);
        return { user: showUser(account) };
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/login",
      summary: "Sign in with a password",
      body: z.strictObject({ username: text(256), password, scope: text(4096).optional() }),
      problems: {
        401: "The name or the password is wrong",
        403: "A second factor is required (`mfa_token`, `factors`) or a passkey (`passkey_required`)",
        429: "Too many failed attempts",
      },
      answer: signedIn,
      handle: async (exchange) => {
        const { body, headers, answerHeaders } = exchange;
        const origin = identification.readOrigin(exchange);
        const mark = cookies.read(headers, "platform_device");
        const { username, password, scope } = body;
        const outcome = await signIn.signIn(
          { kind: "password", username, password, deviceMark: mark },
          origin,
          { scope, clientId: PLATFORM_CLIENT_ID },
        );
        return answerOutcome(outcome, answerHeaders, identification, cookies);
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/setup",
      summary: "Create the first administrator with the link logged at the first start",
      status: 201,
      body: z.strictObject({ token, username: text(256), password, email: text(254).optional() }),
      answer: userAnswer,
      handle: async (exchange) => {
        const origin = identification.readOrigin(exchange);
        const { token: link, ...registration } = exchange.body;
        return { user: showUser(await registrations.setUp(link, registration, origin)) };
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/email/verify/finish",
      summary: "Verify an email address with the link that was sent",
      body: z.strictObject({ token }),
      answer: z.object({ verified: z.boolean() }),
      handle: async (exchange) => {
        await credentials.finishVerification(
          exchange.body.token,
          identification.readOrigin(exchange),
        );
        return { verified: true };
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/recovery/begin",
      summary: "Send a recovery link to a verified email address",
      status: 202,
      body: z.strictObject({ email: text(254) }),
      problems: { 409: "No mail service is configured" },
      answer: z.object({ status: z.string() }),
      handle: async (exchange) => {
        await credentials.beginRecovery(
          exchange.body.email,
          identification.readOrigin(exchange),
          cookies.read(exchange.headers, "platform_device"),
        );
        return { status: "accepted" };
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/recovery/finish",
      summary: "Set a new password with a recovery link",
      body: z.strictObject({ token, new_password: password }),
      answer: userAnswer,
      handle: async (exchange) => {
        const { body } = exchange;
        const origin = identification.readOrigin(exchange);
        const { account, deviceMark } = await credentials.finishRecovery(
          body.token,
          body.new_password,
          origin,
        );
        exchange.answerHeaders.append(
          "Set-Cookie",
          cookies.format("platform_device", deviceMark, DEVICE_MARK_MS),
        );
        return { user: showUser(account) };
      },
    }),
  ];
}

function createOwnRoutes(options: AccountRouteOptions): ApiRoute[] {
  const { identification, credentials, oauth, cookies } = options;
  const record = createAuditRecorder(options);
  const common = { tag: "Accounts" } as const;
  return [
    defineRoute({
      ...common,
      method: "GET",
      path: "/api/v1/auth/account",
      summary: "The caller and their permissions",
      answer: whoAnswer,
      requires: "caller",
      handle: (exchange) => {
        const caller = identification.require(exchange);
        // Tokens of applications get the user's details at userinfo, as far as their scope allows.
        const principal = caller.kind === "client" ? caller : identification.requireUser(exchange);
        const { account, rights } = principal;
        return {
          actor: nameActor(principal),
          ...(account === undefined ? {} : { user: showUser(account) }),
          roles: rights.roles,
          effective_permissions: rights.permissions,
        };
      },
    }),
    defineRoute({
      ...common,
      method: "PATCH",
      path: "/api/v1/auth/account",
      summary:
        "Change the profile; a new email address requires a fresh sign-in and must be verified again",
      body: z.strictObject({
        email: text(254).nullable().optional(),
        name: text(256).nullable().optional(),
        picture: z
          .url({ protocol: /^https$/ })
          .max(2048)
          .nullable()
          .optional(),
      }),
      answer: userAnswer,
      requires: "caller",
      handle: async (exchange) => {
        const { account } =
          exchange.body.email === undefined
            ? identification.requireUser(exchange)
            : identification.requireFreshUser(exchange);
        return { user: showUser(await credentials.change(account, exchange.body)) };
      },
    }),
    defineRoute({
      ...common,
      method: "GET",
      path: "/api/v1/auth/grants",
      summary: "The user's grants to applications",
      answer: grantsAnswer,
      requires: "caller",
      handle: async (exchange) => {
        const { account } = identification.requireUser(exchange);
        const grants = await oauth.grants.list(account.id);
        return {
          grants: grants.map(({ client, scopes, grantedAt, expiresAt }) => ({
            client_id: client.id,
            client_name: client.name,
            ...(client.uri === undefined ? {} : { client_uri: client.uri }),
            scopes,
            granted_at: formatTime(grantedAt),
            expires_at: formatTime(expiresAt),
          })),
        };
      },
    }),
    defineRoute({
      ...common,
      method: "DELETE",
      path: "/api/v1/auth/grants/{client_id}",
      summary: "Revoke the grants to an application with its tokens",
      params: z.object({ client_id: text(255) }),
      requires: "caller",
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.requireUser(exchange);
        const { client_id: clientId } = exchange.params;
        if (!(await oauth.grants.revoke(principal.account.id, clientId))) {
          throw new PlatformError("not_found", "There are no grants to this application.");
        }
        await record(exchange, principal, "grant.revoke", `client:${clientId}`);
        return undefined;
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/password/change",
      summary: "Change the password; other sessions end",
      body: z.strictObject({ current_password: password.optional(), new_password: password }),
      answer: z.object({ changed: z.boolean() }),
      requires: "caller",
      handle: async (exchange) => {
        const { current_password: current = "", new_password: next } = exchange.body;
        // Without a password yet, a fresh sign-in proves the user's identity instead.
        const { account, session } =
          current === ""
            ? identification.requireFreshUser(exchange)
            : identification.requireUser(exchange);
        const origin = identification.readOrigin(exchange);
        await credentials.changePassword(account, current, next, session?.id, origin);
        return { changed: true };
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/email/verify/begin",
      summary: "Send a verification link to the user's email address",
      status: 202,
      answer: sentAnswer,
      requires: "caller",
      handle: async (exchange) => {
        const { account } = identification.requireUser(exchange);
        await credentials.beginVerification(account);
        return { sent_to: account.email };
      },
    }),
    defineRoute({
      ...common,
      method: "POST",
      path: "/api/v1/auth/logout",
      summary: "Sign out: the session and its tokens end",
      requires: "caller",
      answer: NO_BODY,
      handle: async (exchange) => {
        const { session } = identification.requireUser(exchange);
        if (session !== undefined) await credentials.endSession(session.id);
        exchange.answerHeaders.delete("Set-Cookie");
        exchange.answerHeaders.append("Set-Cookie", cookies.format("platform_session", "", 0));
        return undefined;
      },
    }),
  ];
}
