// Permissions `<resource>:<action>` with `*` on either side, and what covers what.

const part = "(?:[a-z0-9][a-z0-9_.-]{0,62}|\\*)";

/** The form of a permission. */
export const PERMISSION = new RegExp(`^${part}:${part}$`);

/** Whether having `held` includes `wanted`; a wanted `*` is only covered by a held `*`. */
export function coversPermission(held: string, wanted: string): boolean {
  const [heldResource, heldAction] = held.split(":");
  const [resource, action] = wanted.split(":");
  return (
    (heldResource === "*" || heldResource === resource) &&
    (heldAction === "*" || heldAction === action)
  );
}

/** Whether any of the permissions includes the wanted one. */
export function hasPermission(held: Iterable<string>, wanted: string): boolean {
  for (const permission of held) if (coversPermission(permission, wanted)) return true;
  return false;
}
