// Access control lists of buckets and objects.

/** The permission of a grant. */
export type AclPermission = "READ" | "WRITE" | "READ_ACP" | "WRITE_ACP" | "FULL_CONTROL";

/** The grantee of a grant. */
export type AclGrantee =
  | { readonly kind: "user"; readonly id: string; readonly displayName: string }
  | { readonly kind: "group"; readonly uri: string };

/** One grant. */
export interface AclGrant {
  readonly grantee: AclGrantee;
  readonly permission: AclPermission;
}

/** An access control list. Without one, the owner alone has access. */
export interface Acl {
  readonly grants: readonly AclGrant[];
}
