// The permission of pages and commands for users and keys.

/** Permission that the operations of users and keys require. */
export const ADMINISTER = "vault:admin";
