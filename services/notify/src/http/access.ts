// Access to the API: scopes of tokens, and the messages that a caller may see.
import { createUnauthorizedError, PlatformError } from "@platform/kernel/errors";
import {
  declareScopes,
  hasScope,
  needScope,
  requireScope,
  type Caller,
} from "@platform/kernel/identity";

/** Scope for sending, and for reading and canceling one's own messages. */
const SEND = "notify:send";
/** Scope for everything. */
const MANAGE = "notify:manage";

/** Allows callers that may send; they have a name. */
export const requireSender = declareScopes(
  (caller) => {
    requireScope(caller, SEND, MANAGE);
    clientOf(caller);
  },
  SEND,
  MANAGE,
);

/** Allows callers that may manage templates, suppressions, webhooks and the messages of all clients. */
export const requireManager = needScope(MANAGE);

/** Returns the name of the client that a caller sends as; "" for the operator. */
export function clientOf(caller: Caller): string {
  switch (caller.kind) {
    case "operator":
      return "";
    case "user": {
      const { sub, all } = caller.claims;
      const clientId = all["client_id"];
      const client = sub ?? (typeof clientId === "string" ? clientId : undefined);
      if (client !== undefined && client !== "") return client.slice(0, 255);
      throw new PlatformError("forbidden", "The token has no subject.");
    }
    case "anonymous":
      throw createUnauthorizedError("Credentials are required.");
    default:
      return caller satisfies never;
  }
}

/** Returns the client whose messages the caller may see; undefined for all. */
export function visibleClient(caller: Caller): string | undefined {
  return hasScope(caller, MANAGE) ? undefined : clientOf(caller);
}
