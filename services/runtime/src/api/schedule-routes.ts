// Operations on the schedules of projects.
import { defineRoute, type ApiRoute } from "@platform/kernel/http";
import { z } from "zod";
import type { ScheduleRegistry } from "../control/schedule-registry.ts";
import { describeActor, requireManage, requireRead } from "./access.ts";

const scheduleSchema = z.object({
  id: z.string(),
  service: z.string().meta({ description: "short name" }),
  name: z.string(),
  timing: z.string().meta({ description: "a duration such as `5m`, or a cron expression in UTC" }),
  next_run_at: z
    .string()
    .nullable()
    .meta({ description: "RFC 3339; null while the service does not run" }),
  is_running: z.boolean(),
  last_run: z
    .object({
      started_at: z.string().meta({ description: "RFC 3339" }),
      duration_ms: z.number(),
      outcome: z.enum(["done", "failed"]),
      error: z.string().nullable().meta({ description: "of a failed run" }),
    })
    .nullable()
    .meta({ description: "null before the first run since the platform was started" }),
});
const TAG = "Schedules";

export function createScheduleRoutes(
  schedules: ScheduleRegistry,
  onChange: (title: string, actor: string) => void,
): ApiRoute[] {
  return [
    defineRoute({
      method: "GET",
      path: "/api/v1/schedules",
      tag: TAG,
      summary: "Schedules (`every`) of all projects, with their last and next run",
      access: requireRead,
      answer: z.object({ items: z.array(scheduleSchema) }),
      handle: () => ({ items: schedules.list() }),
    }),
    defineRoute({
      method: "POST",
      path: "/api/v1/schedules/{id}/run",
      tag: TAG,
      summary: "Run a schedule now, in addition to its next run",
      description:
        "The answer comes when the run was requested; `last_run` has its outcome. A run of another replica is waited for by none: the request is then logged and ignored.",
      access: requireManage,
      params: z.object({ id: z.string().max(64) }),
      status: 202,
      answer: scheduleSchema,
      problems: {
        404: "There is no such schedule",
        409: "It runs already, or its service does not run",
      },
      handle: ({ params: { id }, caller }) => {
        const schedule = schedules.run(id);
        onChange(`schedule ${schedule.name} of ${schedule.service} run`, describeActor(caller));
        return schedule;
      },
    }),
  ];
}
