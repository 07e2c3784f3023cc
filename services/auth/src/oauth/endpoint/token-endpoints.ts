// Introspection (RFC 7662) and revocation (RFC 7009), because the core rejects JWTs at both endpoints, and direct grants.
import type { IncomingMessage, ServerResponse } from "node:http";
import type { LiveSecret } from "@platform/kernel/secrets";
import type { Clock } from "@platform/kernel/time";
import type { Provider } from "oidc-provider";
import { hasPermission } from "../../rbac/permission.ts";
import { keepToClient, openToOrigin } from "../client/cors.ts";
import type { CoreClient } from "../core/core-client.ts";
import { isJwt, type AccessTokenVerifier } from "../token/access-token.ts";
import { DirectGrants, type DirectGrantsOptions } from "../token/direct-grants.ts";
import type { Item, ItemStore } from "../token/item-store.ts";
import type { RevocationList } from "../token/revocation-list.ts";
import { identifyAsker } from "./client-auth.ts";
import { OAuthError, readForm, sendJson } from "./endpoint.ts";

/** Options of the endpoints. */
export interface TokenEndpointsOptions extends DirectGrantsOptions {
  getProvider: () => Provider;
  verifier: AccessTokenVerifier;
  items: ItemStore;
  revocations: RevocationList;
  clock: Clock;
  /** Bearer token that grants access to the feed only. */
  feedToken?: LiveSecret | undefined;
}

const BAD_CLIENT = "client authentication failed";
const INTROSPECT_PERMISSION = "tokens:introspect";

export type TokenEndpoint = "introspect" | "revoke";

/** A request whose client the core has to authenticate, because it uses assertions. */
export interface Pending {
  endpoint: TokenEndpoint;
  token: string;
}

/** The authorized caller: a client with access to its own tokens, or a bearer with access to all. */
type Asking = { client: CoreClient } | { client: undefined };

/** Serves the endpoints. */
export class TokenEndpoints {
  /** Grants of the token endpoint that need nothing from the core's middleware. */
  readonly grants: DirectGrants;
  readonly #options: TokenEndpointsOptions;

  constructor(options: TokenEndpointsOptions) {
    this.grants = new DirectGrants(options);
    this.#options = options;
  }

  /**
   * Answers a request. Returns the pending request if the core has to authenticate the client, with the body for the
   * core: without the token, because the core would reject a JWT.
   */
  async serve(
    endpoint: TokenEndpoint,
    request: IncomingMessage,
    response: ServerResponse,
  ): Promise<{ pending: Pending; body: string } | undefined> {
    // Pages may revoke tokens; introspection is for servers.
    if (endpoint === "revoke") openToOrigin(request, response);
    const form = await readForm(request);
    const token = form.get("token");
    const asker = await identifyAsker(this.#options.getProvider(), request, form);
    if (token === undefined)
      throw new OAuthError(400, "invalid_request", "missing parameter token");
    if (asker.kind === "assertion") {
      form.set("token", "-");
      form.delete("token_type_hint");
      response.removeHeader("Access-Control-Allow-Origin");
      return { pending: { endpoint, token }, body: new URLSearchParams([...form]).toString() };
    }
    const asking: Asking =
      asker.kind === "client"
        ? { client: asker.client }
        : await this.#admitBearer(endpoint, asker.token);
    if (endpoint === "revoke" && asking.client !== undefined)
      await keepToClient(this.#options.getProvider(), asking.client.clientId, request, response);
    sendJson(response, 200, await this.#answer({ endpoint, token }, asking));
    return undefined;
  }

  /** The response to a request whose client the core has authenticated. */
  answerFor(pending: Pending, client: CoreClient): Promise<object> {
    return this.#answer(pending, { client });
  }

  /** The feed of the deny-list; `?since=` is the last position the caller has seen. */
  async serveFeed(request: IncomingMessage, response: ServerResponse): Promise<void> {
    await this.#admitFollower(request);
    const since = new URL(request.url ?? "/", "http://-").searchParams.get("since") ?? "0";
    if (!/^\d{1,15}$/.test(since)) {
      throw new OAuthError(400, "invalid_request", "since must be a position of the feed");
    }
    const { revocations, policy } = this.#options;
    const [feed, policyVersion] = await Promise.all([
      revocations.readFeed(Number(since)),
      policy.readVersion(),
    ]);
    sendJson(response, 200, { ...feed, policy_version: policyVersion });
  }

  async #admitFollower(request: IncomingMessage): Promise<void> {
    const asker = await identifyAsker(this.#options.getProvider(), request, new Map());
    if (asker.kind === "assertion") throw new OAuthError(401, "invalid_client", BAD_CLIENT);
    if (asker.kind === "client") return this.#admitClient(asker.client);
    if (this.#options.feedToken?.accepts(asker.token) !== true) {
      await this.#admitBearer("introspect", asker.token);
    }
  }

  // The feed contains sessions and users of every client.
  async #admitClient(client: CoreClient): Promise<void> {
    if (client.clientAuthMethod === "none") throw new OAuthError(401, "invalid_client", BAD_CLIENT);
    const { permissions } = await this.#options.policy.findClientRights(client.clientId);
    if (hasPermission(permissions, INTROSPECT_PERMISSION)) return;
    const needed = `the permission ${INTROSPECT_PERMISSION} is required`;
    throw new OAuthError(403, "insufficient_scope", needed);
  }

  async #admitBearer(endpoint: TokenEndpoint, token: string): Promise<Asking> {
    const { verifier, policy, audiences } = this.#options;
    const verified = await verifier.verify(token);
    if (
      verified === undefined ||
      verified.claims.cnf !== undefined ||
      verified.claims.aud !== audiences.platform
    ) {
      throw new OAuthError(401, "invalid_token", "the bearer token is not valid", BEARER_CHALLENGE);
    }
    const { sub, client_id, sid, scope } = verified.claims;
    const rights =
      sid === undefined
        ? await policy.findClientRights(client_id)
        : await policy.findUserRights(sub);
    const needed = `tokens:${endpoint}`;
    if (!hasPermission(rights.permissions, needed) || !policy.conveys(scope, needed)) {
      throw new OAuthError(403, "insufficient_scope", `the permission ${needed} is required`);
    }
    return { client: undefined };
  }

  async #answer({ endpoint, token }: Pending, asking: Asking): Promise<object> {
    if (endpoint === "introspect") return this.#introspect(token, asking);
    await this.#revoke(token, asking);
    return {};
  }

  async #introspect(token: string, { client }: Asking): Promise<object> {
    const described = isJwt(token)
      ? await this.#describeAccessToken(token)
      : await this.#describeRefreshToken(token);
    if (described === undefined) return { active: false };
    // RFC 7662 section 2.2: callers without access get the same response as for an unknown token.
    const isKnown = client === undefined || (await this.#mayKnow(client, described.client_id));
    return isKnown ? described : { active: false };
  }

  // Clients see their own tokens, and with the permission those of others; public clients cannot prove their
  // identity.
  async #mayKnow(client: CoreClient, ownerId: string): Promise<boolean> {
    if (client.clientId === ownerId) return true;
    if (client.clientAuthMethod === "none") return false;
    const { permissions } = await this.#options.policy.findClientRights(client.clientId);
    return hasPermission(permissions, INTROSPECT_PERMISSION);
  }

  async #describeAccessToken(token: string): Promise<Described | undefined> {
    const verified = await this.#options.verifier.verify(token);
    if (verified === undefined) return undefined;
    const { claims } = verified;
    return {
      active: true,
      ...claims,
      token_type: claims.cnf?.jkt === undefined ? "Bearer" : "DPoP",
    };
  }

  async #describeRefreshToken(token: string): Promise<Described | undefined> {
    const { items, clock, audiences } = this.#options;
    const item = await items.read("RefreshToken", token);
    const now = clock.now() / 1_000;
    if (item === undefined || item.consumedAt !== undefined) return undefined;
    const { clientId, accountId, scope, exp, iat, grantId, sessionUid } = item.payload;
    if (exp === undefined || exp <= now || clientId === undefined) return undefined;
    if (grantId === undefined || (await items.read("Grant", grantId)) === undefined)
      return undefined;
    return {
      active: true,
      client_id: clientId,
      iss: audiences.issuer,
      sub: accountId,
      sid: sessionUid,
      scope,
      exp,
      iat,
    };
  }

  async #revoke(token: string, asking: Asking): Promise<void> {
    const { items, verifier, revocations } = this.#options;
    if (!isJwt(token)) {
      const item = await items.read("RefreshToken", token);
      if (item === undefined) return;
      requireOwner(asking, item.payload.clientId);
      await this.#revokeFamily(item);
      return;
    }
    const signed = await verifier.verifySignature(token);
    if (signed === undefined) return;
    const { jti, exp, client_id } = signed.claims;
    requireOwner(asking, client_id);
    await revocations.add([{ kind: "jti", value: jti, expiresAt: exp * 1_000 }]);
  }

  // RFC 7009 section 2.1: revoking a refresh token revokes the access tokens of its grant.
  async #revokeFamily({ payload }: Item): Promise<void> {
    if (payload.grantId !== undefined) await this.#options.items.revokeGrant(payload.grantId);
  }
}

interface Described {
  active: true;
  client_id: string;
  [member: string]: unknown;
}

const BEARER_CHALLENGE = 'Bearer error="invalid_token"';

function requireOwner({ client }: Asking, owner: string | undefined): void {
  if (client === undefined || client.clientId === owner) return;
  // The core returns the same error for tokens of other clients, so it does not reveal whether the token exists.
  throw new OAuthError(400, "invalid_request", "the token was issued to another client");
}
