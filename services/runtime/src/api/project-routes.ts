// Operations on the projects of the platform. Adding one runs its code with the platform's rights, so they are for the holder
// of the data folder's token only.
import type { ServerResponse } from "node:http";
import { PlatformError } from "@platform/kernel/errors";
import { alreadyAnswered, bytes, defineRoute, NO_BODY, type ApiRoute } from "@platform/kernel/http";
import { declareScopes, hasScope, type Caller } from "@platform/kernel/identity";
import { z } from "zod";
import { createLogFilter, parseLogEvent } from "../control/log-line.ts";
import type { RunningServices } from "../control/running-services.ts";
import type { ServiceControl } from "../control/service-control.ts";
import { readInstalledVersion } from "../package/project-dependency.ts";
import type { HostedProject, Projects } from "../projects/projects.ts";
import { requireOperator, requireRead } from "./access.ts";
import { hasAnyDataRight, hasDataRight } from "./data-access.ts";

/** Unsent bytes above which lines of the log are left out. */
const UNSENT_BYTES_MAX = 1_048_576;
const TAG = "Projects";

/** Options of {@link createProjectRoutes}. */
export interface ProjectRoutesOptions {
  projects: Projects;
  states: RunningServices;
  control: ServiceControl;
  /** Calls a function with each line of the log as JSON; returns a function that ends it. */
  listen: (listener: (json: string) => void) => () => void;
  onChange: (title: string, actor: string) => void;
}

const projectSchema = z.object({
  name: z.string(),
  folder: z.string(),
  kind: z.enum(["own", "kept", "joined"]).meta({
    description:
      "`own`: in the working directory of the platform; `kept` until it is removed; `joined` as long as a terminal is",
  }),
  state: z.enum(["starting", "running", "restarting", "stopping", "stopped"]),
  detail: z.string().meta({ description: "the last failure" }),
  url: z.string().meta({ description: "its host at the gateway, or its own address" }),
  environment_file: z.string().nullable(),
  rules: z
    .array(z.string())
    .meta({ description: "its rules at the gateway: `file:line:column: declaration: fields`" }),
  cuts: z
    .array(z.string())
    .meta({ description: "rules that the operator's `gate/projects.json` has changed" }),
  package_version: z
    .string()
    .nullable()
    .meta({ description: "of the platform's package in its folder; null if there is none" }),
  reloaded_at: z
    .string()
    .nullable()
    .meta({ description: "RFC 3339; since then requests reach its present version" }),
  reload_failure: z.string().meta({
    description: "the error of a newer version that could not be started, with its lines",
  }),
});
type ProjectDocument = z.input<typeof projectSchema>;

const path = z.string().max(4_096).startsWith("/");
const commonBody = z.object({
  folder: path.meta({ description: "absolute path of the project" }),
  protocol: z
    .int()
    .meta({ description: "version of the messages that the project's program speaks" }),
  environment_file: path.optional().meta({ description: "variables of a kept project's process" }),
});
const joinBody = commonBody.extend({
  keep: z.boolean().default(false).meta({ description: "true for a project that stays" }),
  variables: z
    .record(z.string().max(256), z.string().max(131_072))
    .default({})
    .meta({ description: "variables of its process, unless it is kept" }),
});
const params = z.object({ name: z.string().min(1).max(64) });

const LIST_SCOPES = ["runtime:read", "runtime:manage", "data:read"];
/** Throws unless the caller may see the projects, or the data of one. */
const requireList = declareScopes(
  (caller) => {
    if (!hasAnyDataRight(caller, "read")) requireRead(caller);
  },
  ...LIST_SCOPES,
);

function mayList(caller: Caller, project: string): boolean {
  return hasScope(caller, ...LIST_SCOPES) || hasDataRight(caller, "read", project);
}

const OPERATORS = { tag: TAG, access: requireOperator, requires: "token" as const };
const REFUSED = {
  400: "The folder has no project, or its name cannot be used",
  409: "A project of this name runs, or its version is not understood",
};

export function createProjectRoutes(options: ProjectRoutesOptions): ApiRoute[] {
  const { projects, states, control, onChange } = options;
  const missing = { 404: "There is no such project" };
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/projects",
      tag: TAG,
      summary: "Projects of this platform",
      description: "With rights to the data of some projects, only these are listed.",
      access: requireList,
      answer: z.object({ items: z.array(projectSchema) }),
      handle: ({ caller }) => ({
        items: projects
          .list()
          .filter(({ record }) => mayList(caller, record.name))
          .map((one) => toDocument(one, states)),
      }),
    }),
    createAddRoute(options),
    createJoinRoute(options),
    defineRoute({
      ...OPERATORS,
      method: "POST",
      path: "/api/v1/projects/{name}/restart",
      summary: "Restart a project, also one that could not be started",
      params,
      status: 202,
      answer: NO_BODY,
      problems: { ...missing, 409: "Its state does not allow it" },
      handle: ({ params: { name } }) => {
        projects.restart(name, (one) => control.restart(one));
        onChange(`project ${name} restarted`, "operator");
      },
    }),
    defineRoute({
      ...OPERATORS,
      method: "DELETE",
      path: "/api/v1/projects/{name}",
      summary: "Stop a project and forget it; its credentials are revoked",
      params,
      query: z.object({
        data: z
          .enum(["true", "false"])
          .default("false")
          .describe("`true`: its databases are deleted as well."),
      }),
      answer: NO_BODY,
      problems: { ...missing, 409: "It is in the platform's working directory" },
      handle: async ({ params: { name }, query: { data } }) => {
        await projects.remove(name, { dataToo: data === "true" });
        onChange(`project ${name} removed`, "operator");
      },
    }),
  ];
}

function createAddRoute({ projects, states, onChange }: ProjectRoutesOptions): ApiRoute {
  return defineRoute({
    ...OPERATORS,
    method: "POST",
    path: "/api/v1/projects",
    summary: "Add a project, which starts with the platform from now on",
    body: commonBody,
    status: 201,
    answer: projectSchema.extend({ notes: z.array(z.string()) }),
    problems: { ...REFUSED, 422: "It cannot be started" },
    handle: async ({ body: { folder, protocol, environment_file: environmentFile } }) => {
      const project = await projects.add({ folder, protocol, environmentFile, kind: "kept" });
      const notes = await project.started.catch((error: unknown) => {
        throw new PlatformError("unprocessable", describe(error), { cause: error });
      });
      onChange(`project ${project.record.name} added`, "operator");
      return { ...toDocument(project, states), notes };
    },
  });
}

/** A terminal joins with a project: its log is the answer, and the end of the connection the end of the project. */
function createJoinRoute({ projects, listen }: ProjectRoutesOptions): ApiRoute {
  return defineRoute({
    ...OPERATORS,
    method: "POST",
    path: "/api/v1/projects/join",
    summary: "Run a project as long as this request lasts, and receive its log",
    description:
      'The answer is one JSON document a line: `{type: "joined", name, kind, url, notes}` when the project has started, `{type: "log", line}` for each line of its log, `{type: "missed", count}` for lines that were left out because the client did not read fast enough, and `{type: "ended", reason}`. A project that runs already, in the same folder, only sends its log.',
    body: joinBody,
    answer: bytes("application/x-ndjson"),
    problems: REFUSED,
    handle: async ({ body, rawResponse: response }) => {
      if (response === undefined) throw new PlatformError("internal", "There is no connection.");
      const { folder, protocol, keep, variables, environment_file: environmentFile } = body;
      const running = projects.findByFolder(folder);
      const isViewer = running !== undefined && running.record.kind !== "joined";
      if (isViewer && environmentFile !== (running.record.environment_file ?? environmentFile)) {
        throw new PlatformError(
          "conflict",
          `${running.record.name} runs with another environment file: remove it, and add it again.`,
        );
      }
      const project = isViewer
        ? running
        : await projects.add({
            folder,
            protocol,
            ...(keep ? { kind: "kept", environmentFile } : { kind: "joined", variables }),
          });
      const isOwner = !isViewer && !keep;
      // The client may have gone meanwhile.
      const leave = (): void => void (isOwner && projects.leave(project));
      if (response.closed) leave();
      else {
        response.once("close", leave);
        streamProject(response, project, listen);
      }
      return alreadyAnswered();
    },
  });
}

function streamProject(
  response: ServerResponse,
  project: HostedProject,
  listen: ProjectRoutesOptions["listen"],
): void {
  const { name, kind } = project.record;
  let missed = 0;
  const write = (message: object): void => {
    if (!response.writableEnded) response.write(`${JSON.stringify(message)}\n`);
  };
  response.writeHead(200, {
    "Content-Type": "application/x-ndjson",
    "Cache-Control": "no-store",
    "X-Content-Type-Options": "nosniff",
  });
  response.flushHeaders();
  const service = { name, label: name };
  const accepts = createLogFilter({ service, level: "debug", text: undefined });
  const stop = listen((line) => {
    const event = parseLogEvent(line);
    if (event === undefined || !accepts(event)) return;
    if (response.writableLength > UNSENT_BYTES_MAX) {
      missed += 1;
      return;
    }
    if (missed > 0) write({ type: "missed", count: missed });
    missed = 0;
    write({ type: "log", line: line.trimEnd() });
  });
  const end = (reason: string): void => {
    stop();
    write({ type: "ended", reason });
    response.end();
  };
  response.once("close", stop);
  project.started.then(
    (notes) => write({ type: "joined", name, kind, url: project.origin, notes }),
    (error: unknown) => end(describe(error)),
  );
  if (project.ending.aborted) end(String(project.ending.reason));
  else project.ending.addEventListener("abort", () => end(String(project.ending.reason)));
}

function toDocument(
  { record, origin, rules, cuts, reloadedAtMs: at, reloadFailure }: HostedProject,
  states: RunningServices,
): ProjectDocument {
  const { name, folder, kind, environment_file: file = null } = record;
  const state = states.state.services.find((service) => service.name === name);
  return {
    name,
    folder,
    kind,
    state: state?.state ?? "stopped",
    detail: state?.last_failure ?? "",
    url: origin,
    environment_file: file,
    rules: [...rules],
    cuts: [...cuts],
    package_version: readInstalledVersion(folder) ?? null,
    reloaded_at: at === undefined ? null : new Date(at).toISOString(),
    reload_failure: reloadFailure,
  };
}

function describe(error: unknown): string {
  return error instanceof Error ? error.message : String(error);
}
