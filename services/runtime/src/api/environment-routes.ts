// Variables of projects: which are set and by whom, and those that people set here. Secrets are never answered.
import { PlatformError } from "@platform/kernel/errors";
import { createValidationError, defineRoute, NO_BODY, type ApiRoute } from "@platform/kernel/http";
import { EVERY_SCOPE, needScope } from "@platform/kernel/identity";
import type { Clock } from "@platform/kernel/time";
import { z } from "zod";
import type { DataService } from "../data/data-service.ts";
import {
  hasChangedSinceLaunch,
  listOwnVariables,
  removeOwnVariable,
  setOwnVariable,
  VALUE_BYTES_MAX,
} from "../projects/own-variables.ts";
import type { Projects } from "../projects/projects.ts";
import { describeActor, requireManage } from "./access.ts";
import { recordEvent } from "./data-audit.ts";

const PATH = "/api/v1/projects/{name}/environment";
const TAG = "Projects";
/** A variable decides what a project connects to, so setting one is like changing its code. */
const requireAdministrator = needScope(EVERY_SCOPE);
/** Names that are the platform's also while the service that they belong to does not run. */
const PLATFORM_NAMES =
  /^(?:PLATFORM_\w*|OIDC_\w+|MESSAGING_URL|MAIL_URL|AWS_ENDPOINT_URL_S3|AWS_ACCESS_KEY_ID|AWS_SECRET_ACCESS_KEY)$/;
/** Names by which a process finds its programs and code, and those of its runtime. */
const SYSTEM_NAMES =
  /^(?:NODE_(?:OPTIONS|PATH|EXTRA_CA_CERTS|TLS_REJECT_UNAUTHORIZED|REPL_EXTERNAL_MODULE)|BUN_\w+|LD_\w+|DYLD_\w+|PATH|HOME|SHELL|USER|LOGNAME|PWD|TMPDIR|IFS|ENV|BASH_ENV)$/i;

/** Options of {@link createEnvironmentRoutes}. */
export interface EnvironmentRoutesOptions {
  projects: Pick<Projects, "list" | "listVariables">;
  dataDir: string;
  clock: Clock;
  /** Keeps the audit log. */
  data: DataService;
  onChange: (title: string, actor: string) => void;
}

const params = z.object({ name: z.string().min(1).max(64) });
const variableParams = params.extend({
  variable: z.string().regex(/^[A-Za-z_][A-Za-z0-9_]{0,127}$/, "expected letters, digits and _"),
});
const value = z
  .string()
  .refine((text) => Buffer.byteLength(text) <= VALUE_BYTES_MAX, "longer than 32 KiB")
  .refine((text) => !text.includes("\0"), "contains a NUL character");

const itemSchema = z.object({
  name: z.string(),
  source: z.enum(["platform", "own", "file", "shell"]).meta({
    description: "`own`: set here; `file`: the project's environment file; `shell`: the platform's",
  }),
  secret: z.boolean().nullable().meta({ description: "null if it is not known" }),
  value: z.string().nullable().meta({ description: "of those set here that are no secrets" }),
  set_by: z.string().nullable(),
  set_at: z.string().nullable(),
});

export function createEnvironmentRoutes(options: EnvironmentRoutesOptions): ApiRoute[] {
  return [createListRoute(options), createSetRoute(options), createRemoveRoute(options)];
}

function createListRoute(options: EnvironmentRoutesOptions): ApiRoute {
  const { projects, dataDir } = options;
  return defineRoute({
    tag: TAG,
    access: requireManage,
    method: "GET",
    path: PATH,
    summary: "Names of a project's variables, and who sets each",
    description: "Values are answered of those that are set here and are no secrets.",
    params,
    answer: z.object({
      items: z.array(itemSchema),
      restart_needed: z.boolean().meta({ description: "true if it runs with earlier variables" }),
    }),
    problems: { 404: "There is no such project", 503: "The file of its variables is damaged" },
    handle: ({ params: { name } }) => {
      const all = projects.listVariables(name);
      const own = listOwnVariables(dataDir, name);
      const byName = new Map(own.map((one) => [one.name, one]));
      const items = all.map(({ name: variable, source }) => {
        const found = source === "own" ? byName.get(variable) : undefined;
        return {
          name: variable,
          source,
          secret: found === undefined ? null : found.value === undefined,
          value: found?.value ?? null,
          set_by: found?.by ?? null,
          set_at: found === undefined ? null : new Date(found.at).toISOString(),
        };
      });
      return { items, restart_needed: hasChangedSinceLaunch(dataDir, name) };
    },
  });
}

function createSetRoute(options: EnvironmentRoutesOptions): ApiRoute {
  const { projects, dataDir, data, clock, onChange } = options;
  return defineRoute({
    tag: TAG,
    access: requireAdministrator,
    method: "PUT",
    path: `${PATH}/{variable}`,
    summary: "Set a variable of a project, from its next start",
    description:
      "A secret is stored encrypted, and never answered. Names of the platform, and of the system, are refused. It is an audit entry without the value.",
    params: variableParams,
    body: z.strictObject({ value, secret: z.boolean().default(true) }),
    answer: NO_BODY,
    problems: {
      404: "There is no such project",
      409: "The platform sets this variable",
      422: "The project has too many variables",
      503: "The file of its variables is damaged",
    },
    handle: async ({ params: { name, variable }, body, caller }) => {
      requireFree(projects, name, variable);
      const detail = { variable, secret: body.secret };
      await recordEvent(data, caller, { action: "project.variable.set", target: name, detail });
      const by = describeActor(caller);
      setOwnVariable(dataDir, name, { ...body, name: variable, by, at: clock.now() });
      onChange(`variable ${variable} of ${name} set`, by);
    },
  });
}

function createRemoveRoute(options: EnvironmentRoutesOptions): ApiRoute {
  const { projects, dataDir, data, clock, onChange } = options;
  return defineRoute({
    tag: TAG,
    access: requireAdministrator,
    method: "DELETE",
    path: `${PATH}/{variable}`,
    summary: "Remove a variable that was set here",
    params: variableParams,
    answer: NO_BODY,
    problems: {
      404: "There is no such project, or it was not set here",
      503: "The file of its variables is damaged",
    },
    handle: async ({ params: { name, variable }, caller }) => {
      requireProject(projects, name);
      const isOwn = listOwnVariables(dataDir, name).some((one) => one.name === variable);
      if (!isOwn) throw new PlatformError("not_found", `${variable} was not set here.`);
      const detail = { variable };
      await recordEvent(data, caller, { action: "project.variable.remove", target: name, detail });
      removeOwnVariable(dataDir, name, { name: variable, at: clock.now() });
      onChange(`variable ${variable} of ${name} removed`, describeActor(caller));
    },
  });
}

function requireProject(projects: Pick<Projects, "list">, name: string): void {
  if (projects.list().some(({ record }) => record.name === name)) return;
  throw new PlatformError("not_found", "There is no such project.");
}

function requireFree(
  projects: EnvironmentRoutesOptions["projects"],
  project: string,
  variable: string,
): void {
  requireProject(projects, project);
  if (SYSTEM_NAMES.test(variable)) {
    const message = "decides which programs and code a process runs";
    throw createValidationError([{ in: "path", path: "variable", message }]);
  }
  const set = projects.listVariables(project).find(({ name }) => name === variable);
  if (set?.source !== "platform" && !PLATFORM_NAMES.test(variable)) return;
  throw new PlatformError("conflict", `The platform sets ${variable} for its projects.`);
}
