// Client metadata of our own, beside what RFC 7591 registers.
import { errors } from "oidc-provider";

/** Nobody has to allow what is the operator's own. */
export const firstParty = "first_party";

/** For the core: what is the operator's own is not for those to say who register themselves, which have a context. */
export function validateClientMetadata(ctx: unknown, key: string, value: unknown): void {
  if (value === undefined) return;
  if (ctx !== undefined) throw new errors.InvalidClientMetadata(`${key} is set by operators`);
  if (typeof value !== "boolean") throw new errors.InvalidClientMetadata(`${key} is true or false`);
}
