// Routes of passkeys: registration, sign-in, list, rename, removal.
import { PlatformError } from "@platform/kernel/errors";
import { createValidationError, defineRoute, type ApiRoute, NO_BODY } from "@platform/kernel/http";
import type { AuthenticationResponseJSON, RegistrationResponseJSON } from "@simplewebauthn/server";
import { z } from "zod";
import type { AuditLog } from "../audit/audit-log.ts";
import { assertion, credentialId, registration } from "../factor/credential.ts";
import type { Passkeys } from "../factor/passkeys.ts";
import { nameDevice } from "../session/device.ts";
import type { Sessions } from "../session/sessions.ts";
import type { Registration, Registrations } from "../sign-in/registrations.ts";
import type { SecurityNotices } from "../sign-in/security-notices.ts";
import type { SignIn } from "../sign-in/sign-in.ts";
import type { Users } from "../user/users.ts";
import type { Cookies } from "../web/cookies.ts";
import { createAuditRecorder } from "./audit-recorder.ts";
import { createNoSession, type Identification } from "./principal.ts";
import {
  challengeAnswer,
  newPasskeyAnswer,
  passkeyAnswer,
  passkeysAnswer,
  signedIn,
} from "./responses.ts";
import { answerOutcome, answerSignedIn, showUser } from "./signed-in.ts";

/** The payload of a registration for one's own account: its session, and the scope of the caller's token. */
interface OwnRegistration {
  sid: string;
  scope: string | undefined;
}

/** Options of these routes. */
export interface PasskeyRouteOptions {
  identification: Identification;
  passkeys: Passkeys;
  signIn: SignIn;
  sessions: Sessions;
  registrations: Registrations;
  users: Users;
  notices: SecurityNotices;
  audit: AuditLog;
  cookies: Cookies;
}

export function createPasskeyRoutes(options: PasskeyRouteOptions): ApiRoute[] {
  return [...createCeremonyRoutes(options), ...createOwnPasskeyRoutes(options)];
}

function createCeremonyRoutes(options: PasskeyRouteOptions): ApiRoute[] {
  const { identification, passkeys, signIn, registrations, users, notices, audit, cookies } =
    options;
  const { sessions } = options;
  const common = { tag: "Passkeys", access: "public", method: "POST" } as const;
  return [
    defineRoute({
      ...common,
      path: "/api/v1/auth/passkey/register/begin",
      summary: "Options to create a passkey, after a fresh sign-in or with an invitation",
      body: z.strictObject({
        user_id: z.string().min(1).max(64).optional(),
        invitation: z.string().min(1).max(128).optional(),
        username: z.string().min(1).max(256).optional(),
      }),
      problems: { 403: "The account is not yours" },
      answer: challengeAnswer,
      handle: async (exchange) => {
        const { user_id: userId, invitation, username } = exchange.body;
        if (invitation !== undefined) {
          if (username === undefined) {
            throw createValidationError([{ in: "body", path: "username", message: "required" }]);
          }
          const invited = await registrations.checkInvitation(invitation, username);
          const payload = { invitation, username: invited.username, id: invited.id };
          return {
            challenge: await passkeys.beginRegistration(invited, payload, false),
          };
        }
        const { account, session, scope } = await identification.identifyStrong(exchange);
        if (userId !== undefined && userId !== account.id) {
          throw new PlatformError(
            "forbidden",
            "Passkeys can only be registered for your own account.",
          );
        }
        if (session === undefined) throw createNoSession();
        const payload: OwnRegistration = { sid: session.id, scope: scope?.join(" ") };
        return { challenge: await passkeys.beginRegistration(account, payload, true) };
      },
    }),
    defineRoute({
      ...common,
      path: "/api/v1/auth/passkey/register/finish",
      summary: "Register the credential that the browser created",
      status: 201,
      body: registration,
      answer: newPasskeyAnswer,
      handle: async (exchange) => {
        const origin = identification.readOrigin(exchange);
        const response = exchange.body as unknown as RegistrationResponseJSON;
        const { issued, amr, authenticator, keep } = await passkeys.finishRegistration(response);
        let account = issued.userId === undefined ? undefined : await users.find(issued.userId);
        if (issued.userId === undefined) {
          const invited = issued.payload as Required<
            Pick<Registration, "id" | "invitation" | "username">
          >;
          account = await registrations.register(invited, origin);
        }
        if (account === undefined || account.disabled) {
          throw new PlatformError("forbidden", "The account is disabled or deleted.");
        }
        const own =
          issued.userId === undefined ? undefined : (issued.payload as OwnRegistration | null);
        // A registration must not complete after its session has ended.
        if (own !== undefined && !(await sessions.isAlive(own?.sid ?? "", account.id)))
          throw createNoSession();
        const passkey = await keep(account.id, authenticator ?? nameDevice(origin.userAgent));
        await audit.record({
          action: "passkey.register",
          actor: `user:${account.id}`,
          target: `passkey:${passkey.id}`,
          ip: origin.ip,
          userAgent: origin.userAgent,
        });
        notices.tell(account, "passkey.register");
        if (own === undefined || own === null) return { passkey, user: showUser(account) };
        const elevated = await signIn.completeEnrolment(account, own.sid, amr, {
          scope: own.scope,
        });
        return {
          passkey,
          ...answerSignedIn(elevated, exchange.answerHeaders, identification, cookies),
        };
      },
    }),
    defineRoute({
      ...common,
      path: "/api/v1/auth/passkey/login/begin",
      summary: "Options to sign in with a passkey, without a username",
      body: z.object({ username: z.string().max(256).optional() }).optional(),
      answer: challengeAnswer,
      handle: async () => ({ challenge: await passkeys.beginLogin() }),
    }),
    defineRoute({
      ...common,
      path: "/api/v1/auth/passkey/login/finish",
      summary: "Sign in with the signed challenge",
      body: assertion,
      answer: signedIn,
      handle: async (exchange) => {
        const origin = identification.readOrigin(exchange);
        const response = exchange.body as unknown as AuthenticationResponseJSON;
        const outcome = await signIn.signIn({ kind: "passkey", response }, origin);
        return answerOutcome(outcome, exchange.answerHeaders, identification, cookies);
      },
    }),
  ];
}

function createOwnPasskeyRoutes(options: PasskeyRouteOptions): ApiRoute[] {
  const { identification, passkeys, notices } = options;
  const record = createAuditRecorder(options);
  const tag = "Passkeys";
  const path = "/api/v1/auth/passkeys/{id}";
  const params = z.object({ id: credentialId });
  return [
    defineRoute({
      tag,
      method: "GET",
      path: "/api/v1/auth/passkeys",
      summary: "The user's passkeys",
      answer: passkeysAnswer,
      requires: "caller",
      handle: async (exchange) => {
        const { account } = identification.requireUser(exchange);
        return { passkeys: await passkeys.list(account.id) };
      },
    }),
    defineRoute({
      tag,
      method: "PATCH",
      path,
      summary: "Rename a passkey",
      params,
      body: z.strictObject({ name: z.string().trim().min(1).max(64) }),
      answer: passkeyAnswer,
      requires: "caller",
      handle: async (exchange) => {
        const principal = identification.requireUser(exchange);
        await identification.requireSecondFactor(principal);
        const { account } = principal;
        const item = await passkeys.rename(account.id, exchange.params.id, exchange.body.name);
        if (item === undefined) throw noSuchPasskey();
        return { passkey: item };
      },
    }),
    defineRoute({
      tag,
      method: "DELETE",
      path,
      summary: "Remove a passkey",
      params,
      problems: { 409: "The passkey is the only way to sign in" },
      requires: "caller",
      answer: NO_BODY,
      handle: async (exchange) => {
        const principal = identification.requireFreshUser(exchange);
        await identification.requireSecondFactor(principal);
        const { account } = principal;
        if (!(await passkeys.remove(account, exchange.params.id))) throw noSuchPasskey();
        await record(exchange, principal, "passkey.remove", `passkey:${exchange.params.id}`);
        notices.tell(account, "passkey.remove");
        return undefined;
      },
    }),
  ];
}

function noSuchPasskey(): PlatformError {
  return new PlatformError("not_found", "There is no such passkey.");
}
