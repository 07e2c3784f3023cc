// Applications: programs with a client at identity, a bucket, topics and mail of their own. As `platform app`.
import { existsSync } from "node:fs";
import { PlatformError, type ErrorCode } from "@platform/kernel/errors";
import { defineRoute, NO_BODY, readBearer, type ApiRoute } from "@platform/kernel/http";
import { EVERY_SCOPE, needScope, type Caller } from "@platform/kernel/identity";
import { z } from "zod";
import { ApiError } from "../client/api-client.ts";
import {
  APPLICATION_NAME,
  ApplicationMissing,
  ApplicationTaken,
  createApplication,
  nameRole,
  readApplications,
  removeApplication,
  renewSecrets,
  type Lines,
} from "../client/application.ts";
import { connectIdentity } from "../client/connect.ts";
import { EXAMPLE_LANGUAGES, formatEnvironmentFile } from "../client/environment-file.ts";
import type { Target } from "../client/target.ts";
import { getCredentialsPath } from "../projects/entry.ts";
import { OVERLAP_S_MAX } from "../services/rotatable.ts";
import { describeActor } from "./access.ts";

/** Options of {@link createApplicationRoutes}. */
export interface ApplicationRoutesOptions {
  /** The platform with its current state and credentials. */
  getTarget: () => Target;
  onChange: (title: string, actor: string) => void;
}

const name = z.string().regex(APPLICATION_NAME, {
  error: "expected 1 to 40 lower-case letters, digits or -, beginning with a letter",
});
const params = z.object({ name });
const applicationSchema = z.object({
  name: z.string(),
  role: z.string().meta({ description: "its role at identity, and its user in storage" }),
  client_id: z.string(),
  redirect_uris: z.array(z.string()),
  scope: z.string().meta({ description: "separated by spaces" }),
  is_project: z.boolean().meta({
    description: "true if a project of this platform uses it, which creates it again at its start",
  }),
});
const filesSchema = z
  .object({
    variables: z.array(z.object({ name: z.string(), value: z.string() })),
    files: z.array(z.object({ language: z.enum(EXAMPLE_LANGUAGES), text: z.string() })),
  })
  .meta({ description: "the variables, and environment files with examples; shown once" });
const bodySchema = z.strictObject({
  name,
  redirects: z
    .array(z.url({ protocol: /^https?$/ }).max(2_048))
    .max(20)
    .default([])
    .meta({ description: "addresses to which users return after they have signed in" }),
  bucket: z
    .string()
    .min(3)
    .max(63)
    .optional()
    .meta({ description: "that it may read and write; created if it is missing" }),
  topics: z.array(z.string().min(1).max(249)).max(50).default([]).meta({
    description: "names or patterns that it may publish and subscribe, with `*` and `#`",
  }),
  mail: z.boolean().default(false).meta({ description: "true if it may send mail" }),
});

/** An application gets rights at all services, so that only administrators may add one. */
const OPERATION = { tag: "Applications", access: needScope(EVERY_SCOPE) };
const PROBLEMS = { 503: "A service that it needs does not run; nothing has changed" };
const MISSING = { ...PROBLEMS, 404: "There is no such application" };
const OF_PROJECT = "It is that of a project, which renews it itself";

export function createApplicationRoutes(options: ApplicationRoutesOptions): ApiRoute[] {
  return [
    createListRoute(options),
    createAddRoute(options),
    createSecretRoute(options),
    createRemoveRoute(options),
  ];
}

function createListRoute({ getTarget }: ApplicationRoutesOptions): ApiRoute {
  return defineRoute({
    ...OPERATION,
    method: "GET",
    path: "/api/v1/applications",
    summary: "Applications, by pages of identity's clients",
    query: z.object({ cursor: z.string().max(1_024).optional() }),
    answer: z.object({
      items: z.array(applicationSchema).meta({
        description: "at most 100; can be empty although further pages have some",
      }),
      next_cursor: z.string().nullable(),
    }),
    problems: PROBLEMS,
    handle: async ({ query: { cursor }, caller, headers }) =>
      explain(async () => {
        const target = actAs(getTarget(), caller, headers);
        const page = await readApplications(await connectIdentity(target), cursor);
        const items = page.items.map((one) => ({
          name: one.name,
          role: nameRole(one.name),
          client_id: one.client_id,
          redirect_uris: [...one.redirect_uris],
          scope: one.scope,
          is_project: isOfProject(target, one.name),
        }));
        return { items, next_cursor: page.next ?? null };
      }),
  });
}

function createAddRoute({ getTarget, onChange }: ApplicationRoutesOptions): ApiRoute {
  return defineRoute({
    ...OPERATION,
    method: "POST",
    path: "/api/v1/applications",
    summary: "Add an application",
    description:
      "It gets a client and a role at identity and, if wanted, a bucket with a key, topics, and mail. Its secrets are in this answer only. If a step fails, those before it are undone.",
    body: bodySchema,
    status: 201,
    answer: filesSchema.extend({ name: z.string(), role: z.string() }),
    problems: { ...PROBLEMS, 409: "There is an application of this name" },
    handle: async ({ body, caller, headers }) =>
      explain(async () => {
        const target = actAs(getTarget(), caller, headers);
        const application = { ...body, bucket: body.bucket };
        const lines = await createApplication(target, application);
        onChange(`application ${body.name} added`, describeActor(caller));
        return { name: body.name, role: nameRole(body.name), ...toFiles(lines, application) };
      }),
  });
}

function createSecretRoute({ getTarget, onChange }: ApplicationRoutesOptions): ApiRoute {
  return defineRoute({
    ...OPERATION,
    method: "POST",
    path: "/api/v1/applications/{name}/secret",
    summary: "Replace the secrets of an application",
    description:
      "The secret of its client and its key in storage; the answer has the variables that change. The former ones are accepted until the end of the overlap.",
    params,
    body: z.strictObject({
      overlap_seconds: z.int().min(0).max(OVERLAP_S_MAX).default(86_400).meta({
        description: "time for which the former secrets are accepted",
      }),
    }),
    answer: filesSchema.extend({ former_ends_at: z.string().meta({ description: "RFC 3339" }) }),
    problems: { ...MISSING, 409: OF_PROJECT },
    handle: async ({ params: { name: wanted }, body, caller, headers }) =>
      explain(async () => {
        const target = actAs(getTarget(), caller, headers);
        refuseProject(target, wanted);
        const { overlap_seconds: seconds } = body;
        const lines = await renewSecrets(target, wanted, seconds);
        onChange(`secrets of application ${wanted} replaced`, describeActor(caller));
        const application = { name: wanted, bucket: undefined, topics: [], mail: false };
        const end = new Date(Date.now() + seconds * 1_000).toISOString();
        return { ...toFiles(lines, application), former_ends_at: end };
      }),
  });
}

function createRemoveRoute({ getTarget, onChange }: ApplicationRoutesOptions): ApiRoute {
  return defineRoute({
    ...OPERATION,
    method: "DELETE",
    path: "/api/v1/applications/{name}",
    summary: "Remove an application: its client, role, topic rules and keys",
    description: "Its tokens are revoked. Its bucket and topics are kept.",
    params,
    answer: NO_BODY,
    problems: { ...MISSING, 409: OF_PROJECT },
    handle: async ({ params: { name: wanted }, caller, headers }) =>
      explain(async () => {
        const target = actAs(getTarget(), caller, headers);
        refuseProject(target, wanted);
        if (!(await removeApplication(target, wanted))) throw new ApplicationMissing(wanted);
        onChange(`application ${wanted} removed`, describeActor(caller));
      }),
  });
}

/** The target with the token of a person, whose rights identity checks, and whom its audit log names. */
function actAs(target: Target, caller: Caller, headers: Headers): Target {
  const token = caller.kind === "user" ? readBearer(headers) : undefined;
  return token === undefined ? target : { ...target, identityToken: token };
}

function isOfProject({ dataDir }: Target, wanted: string): boolean {
  return existsSync(getCredentialsPath({ dataDir }, wanted));
}

function refuseProject(target: Target, wanted: string): void {
  if (!isOfProject(target, wanted)) return;
  throw new PlatformError("conflict", `${wanted} is the application of a project.`);
}

function toFiles(
  lines: Lines,
  application: Parameters<typeof formatEnvironmentFile>[0]["application"],
) {
  const path = `${application.name}.env`;
  return {
    variables: lines.map(([variable, value]) => ({ name: variable, value })),
    files: EXAMPLE_LANGUAGES.map((language) => ({
      language,
      text: formatEnvironmentFile({ lines, application, language, path }),
    })),
  };
}

const CODES: Readonly<Record<number, ErrorCode>> = {
  400: "unprocessable",
  403: "forbidden",
  404: "not_found",
  409: "conflict",
  422: "unprocessable",
};

/** Runs work on services, whose refusals become problems of this API. */
async function explain<T>(work: () => Promise<T>): Promise<T> {
  try {
    return await work();
  } catch (error) {
    if (!(error instanceof Error)) throw error;
    const detail = `${error.message}.`;
    if (error instanceof ApplicationMissing) throw new PlatformError("not_found", detail);
    if (error instanceof ApplicationTaken) throw new PlatformError("conflict", detail);
    if (error instanceof ApiError) {
      throw new PlatformError(CODES[error.status] ?? "unavailable", detail, { cause: error });
    }
    // The client of a service that does not run, or does not answer.
    if (error.name === "Error") throw new PlatformError("unavailable", detail, { cause: error });
    throw error;
  }
}
