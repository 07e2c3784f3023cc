// Authorization requests that wait for the user: what the pages see of them, and how they end.
import type { IncomingMessage, ServerResponse } from "node:http";
import { PlatformError } from "@platform/kernel/errors";
import { errors, type InteractionResults, type Provider } from "oidc-provider";
import type { Consents } from "./consents.ts";
import { firstParty } from "./client-metadata.ts";
import { describeClient } from "./grants.ts";
import type { TokenPolicy } from "./policy.ts";
import type { Interaction, InteractionOutcome } from "./port.ts";

const rememberable = new Set(["op_scopes_missing", "op_claims_missing", "rs_scopes_missing"]);

type CoreInteraction = Awaited<ReturnType<Provider["interactionDetails"]>>;

/** The interactions of all browsers. */
export class Interactions {
  readonly #getProvider: () => Provider;
  readonly #policy: TokenPolicy;
  readonly #consents: Consents;
  readonly #issuer: string;

  constructor(parts: {
    getProvider: () => Provider;
    policy: TokenPolicy;
    consents: Consents;
    issuer: string;
  }) {
    this.#getProvider = parts.getProvider;
    this.#policy = parts.policy;
    this.#consents = parts.consents;
    this.#issuer = parts.issuer;
  }

  /** The one that the browser's cookie names. */
  async find(request: IncomingMessage, response: ServerResponse): Promise<Interaction | undefined> {
    const details = await this.#read(request, response);
    if (details === undefined) return undefined;
    const { uid, prompt, params, session } = details;
    const client = await this.#getProvider().Client.find(String(params["client_id"]));
    if (client === undefined) return undefined;
    const asked = readText(params["scope"])?.split(" ") ?? [];
    const missing = readMissing(details);
    const permitted = await this.#permit(client.scope, session?.accountId);
    const isConsent = prompt.name === "consent";
    const scopes = (
      isConsent ? [...new Set([...missing.oidc, ...missing.resource])] : asked
    ).filter((scope) => permitted.has(scope));
    return {
      uid,
      prompt: isConsent ? "consent" : "login",
      reasons: prompt.reasons,
      client: describeClient(client),
      scopes,
      loginHint: readText(params["login_hint"]),
      acrValues: readText(params["acr_values"]),
      accountId: session?.accountId,
      startedAt: (details.iat ?? 0) * 1_000,
      redirectUri: readText(params["redirect_uri"]),
      isAgreed: isConsent && (await this.#isAgreed(details, client, scopes)),
    };
  }

  // Where the client asks for the page itself, or may be somebody else's program, the user is always asked.
  async #isAgreed(
    { prompt, session }: CoreInteraction,
    client: { clientId: string; [name: string]: unknown },
    scopes: readonly string[],
  ): Promise<boolean> {
    if (session?.accountId === undefined || !prompt.reasons.every((name) => rememberable.has(name)))
      return false;
    if (client[firstParty] === true) return true;
    if (readMissingClaims(prompt).length > 0) return false;
    const agreed = await this.#consents.find(session.accountId, client.clientId);
    return scopes.every((scope) => agreed.has(scope));
  }

  /** Ends it; the returned URL goes on with the authorization. */
  async finish(
    request: IncomingMessage,
    response: ServerResponse,
    outcome: InteractionOutcome,
  ): Promise<string> {
    const details = await this.#read(request, response);
    if (details === undefined) {
      throw new PlatformError(
        "not_found",
        "The sign-in has expired. Start again at the application.",
      );
    }
    const result = await this.#buildResult(details, outcome);
    return this.#getProvider().interactionResult(request, response, result, {
      mergeWithLastSubmission: outcome.kind === "consent",
    });
  }

  async #buildResult(
    details: CoreInteraction,
    outcome: InteractionOutcome,
  ): Promise<InteractionResults> {
    switch (outcome.kind) {
      case "denied":
        return { error: "access_denied", error_description: "the user did not agree" };
      case "login": {
        const { id, userId, authTime, acr, amr } = outcome.session;
        const ts = Math.floor(authTime / 1_000);
        return { login: { accountId: userId, sid: id, ts, acr, amr: [...amr] } };
      }
      case "consent":
        return { consent: { grantId: await this.#grant(details, outcome.isAsked) } };
      default:
        return outcome satisfies never;
    }
  }

  async #grant(details: CoreInteraction, isAsked: boolean): Promise<string> {
    const provider = this.#getProvider();
    const { grantId, session, params } = details;
    if (session?.accountId === undefined) {
      throw new PlatformError("conflict", "Nobody is signed in who could agree.");
    }
    const known = grantId === undefined ? undefined : await provider.Grant.find(grantId);
    const grant =
      known ??
      new provider.Grant({ accountId: session.accountId, clientId: String(params["client_id"]) });
    const { oidc, claims, resource } = readMissing(details);
    const client = await provider.Client.find(String(params["client_id"]));
    const permitted = await this.#permit(client?.scope, session.accountId);
    // What the user may not have was not shown: agreeing to the rest is no consent to it, should roles change.
    for (const scope of oidc) {
      if (permitted.has(scope)) grant.addOIDCScope(scope);
      else grant.rejectOIDCScope(scope);
    }
    if (claims.length > 0) grant.addOIDCClaims(claims);
    if (resource.length > 0) grant.addResourceScope(this.#issuer, resource.join(" "));
    if (isAsked) {
      const agreed = [...oidc, ...resource].filter((scope) => permitted.has(scope));
      await this.#consents.remember(session.accountId, String(params["client_id"]), agreed);
    }
    return grant.save();
  }

  async #permit(
    clientScope: string | undefined,
    userId: string | undefined,
  ): Promise<ReadonlySet<string>> {
    const rights = userId === undefined ? undefined : await this.#policy.findUserRights(userId);
    return new Set(this.#policy.permit(clientScope, rights));
  }

  async #read(
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<CoreInteraction | undefined> {
    try {
      return await this.#getProvider().interactionDetails(request, response);
    } catch (error) {
      if (error instanceof errors.SessionNotFound) return undefined;
      throw error;
    }
  }
}

function readMissingClaims(prompt: CoreInteraction["prompt"]): readonly string[] {
  return (prompt.details as { missingOIDCClaims?: string[] }).missingOIDCClaims ?? [];
}

function readMissing({ prompt }: CoreInteraction): {
  oidc: string[];
  claims: string[];
  resource: string[];
} {
  const { missingOIDCScope, missingOIDCClaims, missingResourceScopes } = prompt.details as {
    missingOIDCScope?: string[];
    missingOIDCClaims?: string[];
    missingResourceScopes?: Record<string, string[]>;
  };
  const oidc = missingOIDCScope ?? [];
  const resource = Object.values(missingResourceScopes ?? {}).flat();
  return {
    oidc,
    claims: missingOIDCClaims ?? [],
    resource,
  };
}

function readText(value: unknown): string | undefined {
  return typeof value === "string" ? value : undefined;
}
