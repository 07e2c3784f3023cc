// Rights in messaging. Those of a user are the scopes of the token; operators and password users have all.

/** A right. `manage`: create, change and delete topics. */
export type Right = "publish" | "subscribe" | "manage";

/** Rights of a caller. */
export type Rights = ReadonlySet<Right>;

const RIGHTS: readonly Right[] = ["publish", "subscribe", "manage"];

/** All rights. */
export const ALL_RIGHTS: Rights = new Set(RIGHTS);

/** The scope of a right. */
export function scopeOf(right: Right): string {
  return `pulse:${right}`;
}

/** The rights that scopes convey. */
export function readRights(scopes: readonly string[]): Rights {
  return new Set(RIGHTS.filter((right) => scopes.includes(scopeOf(right))));
}
