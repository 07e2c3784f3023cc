// Messages between a service's process and the processes that supervise it.
import type { ScheduleReport } from "@platform/service/host";

/**
 * Version of the messages between a project's program and the platform that supervises it, and of the variables and
 * arguments with which it is started: a project may have installed another version than the platform. Raised by each change
 * that an earlier version does not understand.
 */
export const PROTOCOL = 1;

/** The version in a message of another process; undefined if it has none. */
export function readProtocol(message: unknown): number | undefined {
  if (typeof message !== "object" || message === null || !("protocol" in message)) return undefined;
  return typeof message.protocol === "number" ? message.protocol : undefined;
}

/** From the service: all its schedules. */
export interface SchedulesMessage {
  readonly type: "schedules";
  readonly schedules: readonly ScheduleReport[];
}

/** From the service: a file whose change requires a new process, or a folder of migrations. */
export interface FileMessage {
  readonly type: "file" | "folder";
  readonly path: string;
}

/** From the service: it has a database, so its successors load what databases need while they wait. */
export interface DatabaseMessage {
  readonly type: "database";
}

/** From the service: its file does not compile. Nothing of it has run, so the process waits for the next change. */
export interface RefusedMessage {
  readonly type: "refused";
}

/** To a waiting process: load the service, or what databases need. */
export type WorkerCommand = "load" | "prepare database";

/** To the service: run a schedule now. */
export interface RunCommand {
  readonly type: "run_schedule";
  readonly name: string;
}

/** True if a message of another process is a SchedulesMessage. */
export function isSchedulesMessage(message: unknown): message is SchedulesMessage {
  return hasType(message, "schedules");
}

/** True if a message of another process is a FileMessage. */
export function isFileMessage(message: unknown): message is FileMessage {
  return hasType(message, "file") || hasType(message, "folder");
}

/** True if a message of another process is a DatabaseMessage. */
export function isDatabaseMessage(message: unknown): message is DatabaseMessage {
  return hasType(message, "database");
}

/** True if a message of another process is a RefusedMessage. */
export function isRefusedMessage(message: unknown): message is RefusedMessage {
  return hasType(message, "refused");
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
