// Members of the core's clients that its types omit.
import type { Provider } from "oidc-provider";

/** A client of the core. */
export type CoreClient = NonNullable<Awaited<ReturnType<Provider["Client"]["find"]>>> & {
  /** Throws if the secret has expired. */
  checkClientSecretExpiration(message: string): void;
  compareClientSecret(secret: string): Promise<boolean> | boolean;
  /** Posts a logout token to the client, with retries; resolves after the first try. */
  backchannelLogout(accountId: string, sid: string | undefined): Promise<void>;
  /** Its public keys. */
  readonly asymmetricKeyStore: CoreClientKeys;
  /** Metadata to store. */
  metadata(): Record<string, unknown> & { client_id: string };
};

/** The core's store of a client's public keys; it fetches them when it is stale and a token cannot be verified. */
export interface CoreClientKeys {
  /** Seconds since 1970. */
  freshUntil?: number | undefined;
  fresh: () => boolean;
  refresh: () => Promise<void>;
  selectForVerify: (wanted: { alg?: string | undefined; kid?: string | undefined }) => unknown[];
}

/** The core's client class. */
export interface CoreClients {
  new (metadata: Record<string, unknown>): CoreClient;
  needsSecret(metadata: Record<string, unknown>): boolean;
  validate(metadata: Record<string, unknown>): Promise<void>;
}

/** Member of initial access tokens with the permissions of their issuer. */
export const GRANTED_MEMBER = "granted";

/** The client with this id; `undefined` if there is none. */
export async function findCoreClient(
  provider: Provider,
  clientId: string,
): Promise<CoreClient | undefined> {
  return (await provider.Client.find(clientId)) as CoreClient | undefined;
}
