// Permissions `<resource>:<action>` with `*` on either side.

const PART = "(?:[a-z0-9][a-z0-9_.-]{0,62}|\\*)";

/** The form of a permission. */
export const PERMISSION = new RegExp(`^${PART}:${PART}$`);

/** True if `held` includes `wanted`; only `*` covers a wanted `*`. */
export function coversPermission(held: string, wanted: string): boolean {
  const [heldResource, heldAction] = held.split(":");
  const [resource, action] = wanted.split(":");
  return (
    (heldResource === "*" || heldResource === resource) &&
    (heldAction === "*" || heldAction === action)
  );
}

/** True if one of the permissions includes the wanted one. */
export function hasPermission(held: Iterable<string>, wanted: string): boolean {
  for (const permission of held) if (coversPermission(permission, wanted)) return true;
  return false;
}

/** Permissions that both lists include. */
export function intersectPermissions(
  left: readonly string[],
  right: readonly string[],
): readonly string[] {
  const common = new Set<string>();
  for (const one of left) {
    const [resource = "", action = ""] = one.split(":");
    for (const other of right) {
      const [otherResource = "", otherAction = ""] = other.split(":");
      const commonResource = intersectPart(resource, otherResource);
      const commonAction = intersectPart(action, otherAction);
      if (commonResource !== undefined && commonAction !== undefined)
        common.add(`${commonResource}:${commonAction}`);
    }
  }
  return [...common].sort();
}

function intersectPart(left: string, right: string): string | undefined {
  if (left === "*" || left === right) return right;
  return right === "*" ? left : undefined;
}
