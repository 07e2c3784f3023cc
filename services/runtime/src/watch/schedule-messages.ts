// Messages about schedules between a service's process and the processes that supervise it.
import type { ScheduleReport } from "@platform/service/host";

/** From the service: all its schedules. */
export interface SchedulesMessage {
  readonly type: "schedules";
  readonly schedules: readonly ScheduleReport[];
}

/** To the service: run a schedule now. */
export interface RunCommand {
  readonly type: "run_schedule";
  readonly name: string;
}

/** True if a message of another process is a SchedulesMessage. */
export function isSchedulesMessage(message: unknown): message is SchedulesMessage {
  return hasType(message, "schedules");
}

/** True if a message of another process is a RunCommand. */
export function isRunCommand(message: unknown): message is RunCommand {
  return hasType(message, "run_schedule");
}

function hasType(message: unknown, type: string): boolean {
  return (
    typeof message === "object" && message !== null && "type" in message && message.type === type
  );
}
