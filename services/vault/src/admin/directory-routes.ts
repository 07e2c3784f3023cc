// Users, their access keys, and roles in the admin API.
import { type ApiRoute, defineRoute, NO_BODY } from "@platform/kernel/http";
import { z } from "zod";
import {
  accessKeySchema,
  type Directory,
  type KeyRecord,
  type RoleRecord,
  secretKeySchema,
  userNameSchema,
  type UserRecord,
} from "../access/directory.ts";
import { asProblem } from "./problem.ts";

const keyBody = z.strictObject({
  user: userNameSchema,
  access_key: accessKeySchema.optional(),
  secret_key: secretKeySchema.optional(),
  description: z.string().max(256).optional(),
});
const keyChange = z.strictObject({
  enabled: z.boolean().optional(),
  description: z.string().max(256).optional(),
  expires_at: z.iso
    .datetime({ offset: true })
    .nullable()
    .optional()
    .meta({ description: "RFC 3339; the key is not accepted from then on. null removes the end" }),
});
const userBody = z.strictObject({
  enabled: z.boolean().default(true),
  policies: z.record(z.string().min(1).max(128), z.record(z.string(), z.unknown())).default({}),
  namespaces: z.array(z.string().min(1).max(128)).max(100).default([]),
});
const roleBody = z.strictObject({ policies: userBody.shape.policies });
const policiesAnswer = z
  .record(z.string(), z.record(z.string(), z.unknown()))
  .describe("By name, as put");
const userAnswer = z
  .object({
    name: z.string(),
    enabled: z.boolean(),
    policies: policiesAnswer,
    namespaces: z.array(z.string()),
    created_at: z.string(),
  })
  .meta({ id: "StorageUser" });
const roleAnswer = z
  .object({ name: z.string(), policies: policiesAnswer, created_at: z.string() })
  .meta({ id: "StorageRole" });
const keyAnswer = z.object({
  access_key: z.string(),
  user: z.string(),
  enabled: z.boolean(),
  description: z.string(),
  created_at: z.string(),
  expires_at: z.string().nullable(),
});
/** Of users and roles. */
const nameParams = z.object({ name: userNameSchema });
const keyParams = z.object({ access_key: accessKeySchema });

/** Routes of users and their policies. */
export function createUserRoutes(directory: Directory): ApiRoute[] {
  const tag = "Users";
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/users",
      summary: "All users",
      tag,
      answer: z.object({ users: z.array(userAnswer) }),
      handle: () => ({ users: directory.listUsers().map(showUser) }),
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/users/{name}",
      summary: "A user",
      tag,
      params: nameParams,
      answer: userAnswer,
      handle: ({ params }) => showUser(directory.getUser(params.name)),
    }),
    defineRoute({
      method: "PUT",
      path: "/api/v1/users/{name}",
      summary: "Create or replace a user",
      tag,
      params: nameParams,
      body: userBody,
      answer: userAnswer,
      handle: ({ params, body }) =>
        asProblem(
          Promise.resolve().then(() => showUser(directory.putUser({ name: params.name, ...body }))),
        ),
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/users/{name}",
      summary: "Delete a user and its keys",
      tag,
      params: nameParams,
      answer: NO_BODY,
      handle: ({ params }) => directory.deleteUser(params.name),
    }),
  ];
}

/** Routes of roles: users of identity assume them with AssumeRoleWithWebIdentity. */
export function createRoleRoutes(directory: Directory): ApiRoute[] {
  const tag = "Roles";
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/roles",
      summary: "All roles with policies in storage",
      tag,
      answer: z.object({ roles: z.array(roleAnswer) }),
      handle: () => ({ roles: directory.listRoles().map(showRole) }),
    }),
    defineRoute({
      method: "GET",
      path: "/api/v1/roles/{name}",
      summary: "A role",
      tag,
      params: nameParams,
      answer: roleAnswer,
      handle: ({ params }) => showRole(directory.getRole(params.name)),
    }),
    defineRoute({
      method: "PUT",
      path: "/api/v1/roles/{name}",
      summary: "Create or replace a role",
      description: "Users whose token has the role get its policies; session keys follow at once.",
      tag,
      params: nameParams,
      body: roleBody,
      answer: roleAnswer,
      handle: ({ params, body }) =>
        asProblem(
          Promise.resolve().then(() => showRole(directory.putRole({ name: params.name, ...body }))),
        ),
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/roles/{name}",
      summary: "Delete a role; its session keys are refused",
      tag,
      params: nameParams,
      answer: NO_BODY,
      handle: ({ params }) => directory.deleteRole(params.name),
    }),
  ];
}

/** Routes of access keys. */
export function createKeyRoutes(directory: Directory): ApiRoute[] {
  const tag = "Keys";
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/keys",
      summary: "All access keys, without their secrets",
      tag,
      query: z.object({ user: userNameSchema.optional() }),
      answer: z.object({ keys: z.array(keyAnswer) }),
      handle: ({ query }) => ({ keys: directory.listKeys(query.user).map(showKey) }),
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/keys",
      summary: "Create an access key",
      description: "The secret is returned only once.",
      tag,
      body: keyBody,
      status: 201,
      answer: keyAnswer.extend({ secret_key: z.string() }),
      handle: ({ body }) => {
        const key = directory.createKey({
          user: body.user,
          accessKey: body.access_key,
          secretKey: body.secret_key,
          description: body.description,
        });
        return { ...showKey(key), secret_key: key.secretKey };
      },
    }),
    defineRoute({
      method: "PATCH",
      path: "/api/v1/keys/{access_key}",
      summary: "Enable or disable an access key, or set its end",
      tag,
      params: keyParams,
      body: keyChange,
      answer: keyAnswer,
      handle: ({ params, body: { expires_at: end, ...body } }) => {
        const expiresMs = typeof end === "string" ? Date.parse(end) : end;
        return showKey(directory.updateKey(params.access_key, { ...body, expiresMs }));
      },
    }),
    defineRoute({
      method: "DELETE",
      path: "/api/v1/keys/{access_key}",
      summary: "Delete an access key",
      tag,
      params: keyParams,
      answer: NO_BODY,
      handle: ({ params }) => directory.deleteKey(params.access_key),
    }),
  ];
}

function showUser(user: UserRecord) {
  const { createdMs, ...rest } = user;
  return { ...rest, created_at: new Date(createdMs).toISOString() };
}

function showRole({ name, policies, createdMs }: RoleRecord) {
  return { name, policies, created_at: new Date(createdMs).toISOString() };
}

function showKey(key: KeyRecord) {
  const { accessKey, user, enabled, description, createdMs, expiresMs } = key;
  return {
    access_key: accessKey,
    user,
    enabled,
    description,
    created_at: new Date(createdMs).toISOString(),
    expires_at: expiresMs === undefined ? null : new Date(expiresMs).toISOString(),
  };
}
