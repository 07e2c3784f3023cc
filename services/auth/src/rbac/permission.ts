// Permissions `<resource>:<action>` with `*` on either side, or for the data of one project: `data:<action>:<name>`.

const NAME = "[a-z0-9][a-z0-9_.-]{0,62}";
/** Permissions that may be for one thing alone. */
const NAMED = "data:(?:read|edit|query)";
const PART = `(?:${NAME}|\\*)`;

/** The form of a permission. */
export const PERMISSION = new RegExp(`^(?:${PART}:${PART}|${NAMED}:${NAME})$`);

/** The permission for all things of which one is for one thing: `data:read` of `data:read:shop`; undefined for others. */
export function generalize(permission: string): string | undefined {
  const [resource, action, name] = permission.split(":");
  return name === undefined ? undefined : `${resource}:${action}`;
}

/** True if `held` includes `wanted`; only `*` covers a wanted `*`, and one for a name covers only that name. */
export function coversPermission(held: string, wanted: string): boolean {
  const [heldResource, heldAction, heldName] = held.split(":");
  const [resource, action, name] = wanted.split(":");
  return (
    (heldResource === "*" || heldResource === resource) &&
    (heldAction === "*" || heldAction === action) &&
    (heldName === undefined || heldName === name)
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
    const [resource = "", action = "", name] = one.split(":");
    for (const other of right) {
      const [otherResource = "", otherAction = "", otherName] = other.split(":");
      const commonResource = intersectPart(resource, otherResource);
      const commonAction = intersectPart(action, otherAction);
      if (commonResource === undefined || commonAction === undefined) continue;
      if (name !== undefined && otherName !== undefined && name !== otherName) continue;
      const commonName = name ?? otherName;
      const suffix = commonName === undefined ? "" : `:${commonName}`;
      common.add(`${commonResource}:${commonAction}${suffix}`);
    }
  }
  return [...common].sort();
}

function intersectPart(left: string, right: string): string | undefined {
  if (left === "*" || left === right) return right;
  return right === "*" ? left : undefined;
}
