// Operations on the services of the platform.
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { RunningServices } from "../control/running-services.ts";
import type { ServiceControl } from "../control/service-control.ts";
import { readStatus, type ServiceStatus } from "../control/service-status.ts";
import { describeActor, requireManage, requireRead } from "./access.ts";

/** Options of {@link createServiceRoutes}. */
export interface ServiceRoutesOptions {
  states: RunningServices;
  control: ServiceControl;
  hints: RuntimeHints;
  onChange: (title: string, actor: string) => void;
}

const serviceSchema = z.object({
  id: z.string().meta({ description: "short name, as in log lines" }),
  label: z.string().meta({ description: "product name" }),
  kind: z.enum(["platform", "project"]),
  state: z
    .enum(["up", "degraded", "starting", "restarting", "stopping", "stopped"])
    .meta({ description: "`degraded` runs but is not ready; `restarting` waits after a failure" }),
  detail: z.string().meta({ description: "reason of a state other than `up`" }),
  url: z.string(),
  pid: z.number().nullable(),
  started_at: z.string().nullable().meta({ description: "RFC 3339" }),
  restarts: z.number().meta({ description: "unexpected exits since the platform was started" }),
  last_failure: z.string().nullable(),
  listeners: z.array(z.object({ name: z.string(), host: z.string(), port: z.number() })),
});
const hintsSchema = z
  .object({
    credentials: z
      .string()
      .meta({ description: "file with the generated keys and tokens, quoted for a shell" }),
    share: z.string().meta({ description: "command that shares port 3000" }),
    issuer: z.string().nullable().meta({ description: "of identity's tokens; null without it" }),
    gateway: z.string().nullable().meta({ description: "public URL; null without a domain" }),
    s3: z.string().nullable().meta({ description: "public URL; null without a domain" }),
    app: z.string().meta({ description: "commands that create a project and run it" }),
  })
  .meta({
    description:
      "public addresses, and texts for a terminal in the working directory of the platform",
  });
/** Public addresses, and texts for a terminal in the working directory of `platform up`. */
export type RuntimeHints = z.output<typeof hintsSchema>;
type ServiceDocument = z.input<typeof serviceSchema>;

const params = z.object({ id: z.string().min(1).max(64) });
const TAG = "Services";
/** Operations with their effect, and the past tense for the list of changes. */
const OPERATIONS = [
  {
    name: "restart",
    past: "restarted",
    summary: "Restart a service: it drains and starts again",
    description:
      "A stopped service is started. Restarting the gateway disconnects the web console for a moment.",
  },
  {
    name: "stop",
    past: "stopped",
    summary: "Stop a service until it is started again, or the platform is",
    description:
      "It drains first. Without the gateway the web console is unreachable: `start` is then called at this address.",
  },
  {
    name: "start",
    past: "started",
    summary: "Start a stopped service",
    description: "It is `starting` until it is ready.",
  },
] as const;

export function createServiceRoutes(options: ServiceRoutesOptions): ApiRoute[] {
  const { states, control, onChange } = options;
  const describe = async (): Promise<ServiceDocument[]> => {
    const services = await Promise.all(states.state.services.map(readStatus));
    return services.map(toDocument);
  };
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/services",
      tag: TAG,
      summary: "Services of this platform, in the order of their start",
      access: requireRead,
      answer: z.object({ items: z.array(serviceSchema), hints: hintsSchema }),
      handle: async () => ({ items: await describe(), hints: options.hints }),
    }),
    ...OPERATIONS.map(({ name, past, summary, description }) =>
      defineRoute({
        method: "POST",
        path: `/api/v1/services/{id}/${name}`,
        tag: TAG,
        summary,
        description: `${description} The answer comes when the operation has begun; \`GET /api/v1/services\` reports its progress.`,
        access: requireManage,
        params,
        status: 202,
        answer: serviceSchema,
        problems: {
          404: "There is no such service",
          409: "Its state does not allow the operation",
        },
        handle: async ({ params: { id }, caller }) => {
          control[name](id);
          const state = states.state.services.find((one) => one.name === id)!;
          onChange(`${state.label} ${past}`, describeActor(caller));
          return toDocument(await readStatus(state));
        },
      }),
    ),
  ];
}

function toDocument(service: ServiceStatus): ServiceDocument {
  const { name, label, status, detail, restarts, listeners } = service;
  return {
    id: name,
    label,
    kind: service.project === undefined ? "platform" : "project",
    state: status,
    detail,
    url: service.url === "" ? "" : (service.public_url ?? service.url),
    pid: service.pid ?? null,
    started_at: service.started_at ?? null,
    restarts,
    last_failure: service.last_failure ?? null,
    listeners,
  };
}
