// Entitlements of access tokens: the one decision on scopes, roles and audience, for every grant.
import { OPENID_SCOPES, USE_SCOPE, type Rights } from "../../rbac/rights.ts";
import { readActingRoles } from "../core/client-metadata.ts";
import { isPlatformClient } from "../core/lifetimes.ts";
import type { AudienceClient, Audiences } from "./audience.ts";
import type { TokenPolicy } from "./policy.ts";

/** Whose rights a token carries: those of a user, or the client's own (`client_credentials`). */
export type TokenSubject = "user" | "client";

/** A token before it is signed. */
export interface TokenDraft {
  client: AudienceClient;
  subject: TokenSubject;
  /** Of the subject. */
  rights: Rights;
  /** The audience of the requested resource. */
  audience: string;
  scope: string | undefined;
}

/** Decides with the current policy. */
export class Entitlements {
  readonly #policy: TokenPolicy;
  readonly #audiences: Audiences;

  constructor({ policy, audiences }: { policy: TokenPolicy; audiences: Audiences }) {
    this.#policy = policy;
    this.#audiences = audiences;
  }

  /**
   * The scopes that the client may get for a user: those of its registration that the user's roles permit. Clients without
   * a list of scopes get those of OpenID Connect. Before the user has signed in (`rights` undefined) roles are not checked.
   */
  permitUserScopes(client: AudienceClient, rights: Rights | undefined): string[] {
    return readScopes(client).filter((name) => {
      if (name !== USE_SCOPE) return this.#policy.isPermitted(name, rights);
      const roles = rights === undefined ? readActingRoles(client) : actingRoles(client, rights);
      return roles.length > 0;
    });
  }

  /** The scopes that a client may get for itself. Those of OpenID Connect, and to act with roles, are for users only. */
  permitClientScopes(client: AudienceClient, rights: Rights): string[] {
    return readScopes(client).filter(
      (name) =>
        !OPENID_SCOPES.includes(name) &&
        name !== USE_SCOPE &&
        this.#policy.isPermitted(name, rights),
    );
  }

  /** The audience of a client's token for a resource; `undefined` if the client may not have one. */
  chooseAudience(client: AudienceClient, resource: string): string | undefined {
    return this.#audiences.choose(client, resource);
  }

  /**
   * Roles and audience of a token. An application acts only with roles that an administrator has allowed it; a sign-in
   * (`openid profile email`) tells it who the user is, so that only userinfo accepts the token.
   */
  settle({ client, subject, rights, audience, scope }: TokenDraft): {
    audience: string;
    roles: readonly string[];
  } {
    if (subject === "client" || isPlatformClient(client.clientId))
      return { audience, roles: rights.roles };
    const isSignIn = (scope ?? "").split(" ").every((name) => OPENID_SCOPES.includes(name));
    const { issuer, platform } = this.#audiences;
    return {
      audience: audience === platform && (isSignIn || scope === undefined) ? issuer : audience,
      roles: actingRoles(client, rights),
    };
  }
}

/** The roles of a user that the client may act with; all of them for the platform's own clients. */
export function actingRoles(client: AudienceClient, { roles }: Rights): readonly string[] {
  if (isPlatformClient(client.clientId)) return roles;
  const allowed = readActingRoles(client);
  return roles.filter((role) => allowed.includes(role));
}

function readScopes({ scope }: AudienceClient): readonly string[] {
  return typeof scope === "string" ? scope.split(" ") : OPENID_SCOPES;
}
