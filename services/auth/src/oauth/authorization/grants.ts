// Users' grants to clients.
import type { AdapterPayload, Provider } from "oidc-provider";
import { PLATFORM_CLIENT_ID } from "../core/lifetimes.ts";
import type { ItemStore } from "../token/item-store.ts";
import type { Revoker } from "../token/revoker.ts";
import type { Consents } from "./consents.ts";

type Client = NonNullable<Awaited<ReturnType<Provider["Client"]["find"]>>>;

/** A client as pages show it. */
export interface ClientSummary {
  id: string;
  name: string;
  uri: string | undefined;
  policyUri: string | undefined;
  tosUri: string | undefined;
}

/** The grants of a user to one client. */
export interface ClientGrant {
  client: ClientSummary;
  scopes: readonly string[];
  /** Time of the oldest valid consent, in ms. */
  grantedAt: number;
  /** In ms; a later sign-in of the client does not extend it. */
  expiresAt: number;
}

/** Options of `Grants`. */
export interface GrantsOptions {
  getProvider: () => Provider;
  items: ItemStore;
  consents: Consents;
  revoker: Revoker;
}

/** The grants of users. */
export class Grants {
  readonly #options: GrantsOptions;

  constructor(options: GrantsOptions) {
    this.#options = options;
  }

  /**
   * The user's grants by client name, one entry per client, including remembered consents without a token. Grants to
   * the built-in client are sessions and are not included.
   */
  async list(userId: string): Promise<ClientGrant[]> {
    const { getProvider, items, consents } = this.#options;
    const provider = getProvider();
    const remembered = (await consents.list(userId)).map((row) => ({
      clientId: row.client_id,
      openid: { scope: row.scopes },
      iat: row.agreed_at / 1_000,
      exp: row.expires_at / 1_000,
    }));
    const payloads: AdapterPayload[] = [...(await items.readGrantsOf(userId)), ...remembered];
    const byClient = Map.groupBy(payloads, ({ clientId }) => clientId ?? "");
    const grants: ClientGrant[] = [];
    for (const [clientId, given] of byClient) {
      if (clientId === PLATFORM_CLIENT_ID) continue;
      const client = await provider.Client.find(clientId);
      if (client === undefined) continue;
      grants.push({
        client: describeClient(client),
        scopes: [...new Set(given.flatMap(readScopes))].toSorted(),
        grantedAt: Math.min(...given.map(({ iat = 0 }) => iat)) * 1_000,
        expiresAt: Math.max(...given.map(({ exp = 0 }) => exp)) * 1_000,
      });
    }
    return grants.toSorted((a, b) => a.client.name.localeCompare(b.client.name));
  }

  /** Revokes the grants of a user to a client with all tokens; false if there were none. */
  async revoke(userId: string, clientId: string): Promise<boolean> {
    const { consents, revoker } = this.#options;
    const isForgotten = await consents.forget(userId, clientId);
    const isRevoked = await revoker.revokeGrantsTo(clientId, userId);
    return isForgotten || isRevoked;
  }
}

/** Describes a client for pages. */
export function describeClient(client: Client): ClientSummary {
  return {
    id: client.clientId,
    name: client.clientName ?? client.clientId,
    uri: client.clientUri,
    policyUri: client.policyUri,
    tosUri: client.tosUri,
  };
}

function readScopes({ openid, resources, rejected }: AdapterPayload): string[] {
  const words = (text: string | undefined): string[] => text?.split(" ") ?? [];
  // The core's types declare it as an object only; it has the form of the grant.
  const { openid: refusals } = (rejected ?? {}) as { openid?: { scope?: string } };
  const refused = new Set(words(refusals?.scope));
  const { scope: oidc } = (openid ?? {}) as { scope?: string };
  return [oidc, ...Object.values(resources ?? {})]
    .flatMap(words)
    .filter((scope) => scope !== "" && !refused.has(scope));
}
