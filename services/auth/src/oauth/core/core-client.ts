// Members of the core's clients that its types leave out.
import type { Provider } from "oidc-provider";

/** A client as the core knows it. */
export type CoreClient = NonNullable<Awaited<ReturnType<Provider["Client"]["find"]>>> & {
  /** Throws where the secret has an end and it has passed. */
  checkClientSecretExpiration(message: string): void;
  compareClientSecret(secret: string): Promise<boolean> | boolean;
  /** Posts a logout token to the client, and again where that fails; resolves after the first try. */
  backchannelLogout(accountId: string, sid: string | undefined): Promise<void>;
  /** What to store of it. */
  metadata(): Record<string, unknown> & { client_id: string };
};

/** The core's class of clients. */
export interface CoreClients {
  new (metadata: Record<string, unknown>): CoreClient;
  needsSecret(metadata: Record<string, unknown>): boolean;
  validate(metadata: Record<string, unknown>): Promise<void>;
}

/** Where an initial access token keeps the permissions of whoever issued it. */
export const GRANTED_MEMBER = "granted";

/** Finds a client; undefined where there is none. */
export async function findCoreClient(
  provider: Provider,
  clientId: string,
): Promise<CoreClient | undefined> {
  return (await provider.Client.find(clientId)) as CoreClient | undefined;
}
