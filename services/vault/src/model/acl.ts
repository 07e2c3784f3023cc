// Access control lists of buckets and objects.

/** A permission that a list can grant, by its name in S3. */
export type AclPermission = "READ" | "WRITE" | "READ_ACP" | "WRITE_ACP" | "FULL_CONTROL";

/** The user, or the group by its URI, that receives a permission. */
export type AclGrantee =
  | { readonly kind: "user"; readonly id: string; readonly displayName: string }
  | { readonly kind: "group"; readonly uri: string };

/** Grants one permission to one grantee. */
export interface AclGrant {
  readonly grantee: AclGrantee;
  readonly permission: AclPermission;
}

/** An access control list. Without one, the owner alone has access. */
export interface Acl {
  readonly grants: readonly AclGrant[];
}
