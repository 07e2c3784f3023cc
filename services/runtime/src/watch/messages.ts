// Messages between a service's process and the processes that supervise it.
import type { AttributeValue, FinishedSpan } from "@platform/kernel/trace";
import type { GatewayPlace, ScheduleReport, ServiceRules } from "@platform/service/host";

/**
 * Version of the messages between a project's program and the platform that supervises it, and of the variables and
 * arguments with which it is started: a project may have installed another version than the platform. Raised by each change
 * that an earlier version does not understand.
 */
export const PROTOCOL = 2;

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
  /** The error, with its lines. */
  readonly reason: string;
}

/** From the service before it exits: the error that keeps it from starting, with its lines. */
export interface FailedMessage {
  readonly type: "failed";
  readonly reason: string;
}

/** From a project to the platform: its newest version serves, or could not be started. */
export interface OutcomeMessage {
  readonly type: "outcome";
  /** The error of a version that could not be started. */
  readonly failure: string | null;
}

/** A span as a message contains it: attributes as pairs. */
export interface SentSpan extends Pick<
  FinishedSpan,
  "parentSpanId" | "name" | "kind" | "startMs" | "endMs" | "status" | "statusMessage"
> {
  readonly traceId: string;
  readonly spanId: string;
  readonly attributes: readonly (readonly [name: string, value: AttributeValue])[];
  readonly events: readonly { readonly name: string; readonly atMs: number }[];
}

/** From the service: spans that have ended. */
export interface SpansMessage {
  readonly type: "spans";
  readonly spans: readonly SentSpan[];
}

/** To a waiting process: load the service, or what databases need. */
export type WorkerCommand = "load" | "prepare database";

/** To the service: run a schedule now. */
export interface RunCommand {
  readonly type: "run_schedule";
  readonly name: string;
}

/** A version of a service behind the gateway: its rules, and the place where the gateway reaches it. */
export interface GatewayVersion extends GatewayPlace {
  readonly rules: ServiceRules | null;
}

/** From the service, before it opens anything: its rules for the gateway. */
export interface RulesMessage {
  readonly type: "rules";
  readonly rules: ServiceRules | null;
}

/** To the service: where the gateway reaches it; without a place, there is no gateway. */
export interface PlaceMessage {
  readonly type: "place";
  readonly place?: GatewayPlace | undefined;
  /** The reason why its rules are not accepted. */
  readonly refused?: string | undefined;
}

/** From a project to the platform: asks whether rules are accepted or, with a version, to send requests to it by its rules. */
export interface GatewayRequest {
  readonly type: "gateway";
  readonly id: number;
  readonly rules: ServiceRules | null;
  readonly version?: GatewayVersion;
}

/** The answer to a {@link GatewayRequest}. */
export interface GatewayAnswer {
  readonly type: "gateway_answer";
  readonly id: number;
  /** False if the platform runs without a gateway. */
  readonly hasGateway: boolean;
  readonly refused?: string | undefined;
}

/** True if a message of another process is a RulesMessage. */
export function isRulesMessage(message: unknown): message is RulesMessage {
  return hasType(message, "rules");
}

/** True if a message of another process is a PlaceMessage. */
export function isPlaceMessage(message: unknown): message is PlaceMessage {
  return hasType(message, "place");
}

/** True if a message of another process is a GatewayRequest. */
export function isGatewayRequest(message: unknown): message is GatewayRequest {
  return hasType(message, "gateway");
}

/** True if a message of another process is a GatewayAnswer. */
export function isGatewayAnswer(message: unknown): message is GatewayAnswer {
  return hasType(message, "gateway_answer");
}

/** True if a message of another process is a SchedulesMessage. */
export function isSchedulesMessage(message: unknown): message is SchedulesMessage {
  return hasType(message, "schedules");
}

/** True if a message of another process is a SpansMessage; its spans are not checked. */
export function isSpansMessage(message: unknown): message is SpansMessage {
  return hasType(message, "spans");
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

/** True if a message of another process is a FailedMessage. */
export function isFailedMessage(message: unknown): message is FailedMessage {
  return hasType(message, "failed");
}

/** True if a message of another process is an OutcomeMessage. */
export function isOutcomeMessage(message: unknown): message is OutcomeMessage {
  return (
    hasType(message, "outcome") &&
    typeof ((message as { failure?: unknown }).failure ?? "") === "string"
  );
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
