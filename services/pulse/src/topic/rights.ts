// Rights in messaging: of all topics of a tenant by the scopes of a token, of some topics by rules for its roles.

/** A right. `manage`: create, change and delete topics. */
export type Right = "publish" | "subscribe" | "manage";

/** Rights of a caller. */
export interface Rights {
  /** True if the caller has the right for at least one topic. */
  has(right: Right): boolean;
  /** True if the caller has the right for a topic, by its name without the tenant. */
  covers(right: Right, topic: string): boolean;
}

/** All rights by name. */
export const RIGHTS: readonly Right[] = ["publish", "subscribe", "manage"];

/** The rights of operators and password users. */
export const ALL_RIGHTS: Rights = { has: () => true, covers: () => true };

/** The scope of administrators, which includes every right in every tenant. */
export const ADMIN_SCOPE = "pulse:admin";

/** The scope of a right. */
export function scopeOf(right: Right): string {
  return `pulse:${right}`;
}

/** True if the caller has one of the rights for at least one topic. */
export function hasAnyRight(rights: Rights): boolean {
  return RIGHTS.some((right) => rights.has(right));
}

/** True if the caller has one of the rights for a topic. */
export function coversAny(rights: Rights, topic: string): boolean {
  return RIGHTS.some((right) => rights.covers(right, topic));
}
