// Tables of users and groups.
import type { Migration } from "@platform/kernel/db";

/** A user. Times are in ms; booleans are 0 or 1. */
export interface UserRow {
  id: string;
  /** As the user entered it. */
  username: string;
  /** After NFKC and case folding; unique. */
  username_key: string;
  email: string | null;
  /** Lower case; unique among verified addresses only, because anyone can enter an address that is not theirs. */
  email_key: string | null;
  email_verified: number;
  name: string | null;
  picture: string | null;
  phone: string | null;
  /** Set by administrators only. */
  tenant: string | null;
  /** argon2id in PHC form; null without a password. */
  password_hash: string | null;
  password_changed_at: number | null;
  disabled: number;
  /** Increases when everything that was issued to the user becomes void. */
  epoch: number;
  created_at: number;
  updated_at: number;
}

/** A group of users, to which roles and policies can be bound. */
export interface GroupRow {
  id: string;
  name: string;
  created_at: number;
}

/** Membership of a user in a group. */
interface GroupMemberRow {
  group_id: string;
  user_id: string;
}

/** Tables of users and groups. */
export interface UserTables {
  auth_users: UserRow;
  auth_groups: GroupRow;
  auth_group_members: GroupMemberRow;
}

/** Migrations of these tables. */
export const USER_MIGRATIONS: readonly Migration[] = [
  {
    id: "0001-users",
    statements: (t) => [
      `create table auth_users (
        id ${t.text} primary key, username ${t.text} not null, username_key ${t.text} not null unique,
        email ${t.text}, email_key ${t.text}, email_verified ${t.integer} not null default 0,
        name ${t.text}, picture ${t.text}, phone ${t.text}, tenant ${t.text},
        password_hash ${t.text}, password_changed_at ${t.integer},
        disabled ${t.integer} not null default 0, epoch ${t.integer} not null default 0,
        created_at ${t.integer} not null, updated_at ${t.integer} not null)`,
      "create unique index auth_users_by_email on auth_users (email_key) where email_verified = 1",
      "create index auth_users_by_any_email on auth_users (email_key)",
      `create table auth_groups (id ${t.text} primary key, name ${t.text} not null unique, created_at ${t.integer} not null)`,
      `create table auth_group_members (
        group_id ${t.text} not null references auth_groups (id) on delete cascade,
        user_id ${t.text} not null references auth_users (id) on delete cascade,
        primary key (group_id, user_id))`,
      "create index auth_group_members_by_user on auth_group_members (user_id)",
    ],
  },
];
