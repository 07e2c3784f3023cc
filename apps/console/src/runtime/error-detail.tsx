// An error of a log line: its message, the lines of the author's file, and the author's frames before all others.
import { CopyButton } from "../view/copy.tsx";
import { t } from "../words/words.ts";

/** Frames of installed packages, of Node and of the platform. */
const FOREIGN = /node_modules\/|\(node:|at node:|\/(?:packages|services)\/[\w-]+\/src\//;

/** An error as a log line has it. */
export interface LoggedError {
  message: string;
  /** `path:line:column` in the author's file; "" if it is not known. */
  at: string;
  /** Lines of the author's file around it. */
  lines: readonly string[];
  /** Frames of the author's files, and all others. */
  own: readonly string[];
  others: readonly string[];
}

/** The error in the fields of a line; undefined if there is none. */
export function readError(fields: Readonly<Record<string, unknown>>): LoggedError | undefined {
  const { error, frame } = fields;
  const text = readMembers(error);
  const report = readMembers(frame);
  if (text === undefined && report === undefined) {
    return typeof error === "string" ? { ...NOTHING, message: error } : undefined;
  }
  const stack = splitFrames(readText(text?.["stack"]));
  const own = readList(report?.["stack"]);
  const isOwn = (line: string): boolean => !FOREIGN.test(line);
  return {
    message: readText(report?.["message"]) || readText(text?.["message"]),
    at: readText(report?.["at"]),
    lines: readList(report?.["lines"]),
    own: own.length > 0 ? own : stack.filter(isOwn),
    others: own.length > 0 ? stack : stack.filter((line) => !isOwn(line)),
  };
}

const NOTHING: LoggedError = { message: "", at: "", lines: [], own: [], others: [] };

function readMembers(value: unknown): Record<string, unknown> | undefined {
  return typeof value === "object" && value !== null
    ? (value as Record<string, unknown>)
    : undefined;
}

function readText(value: unknown): string {
  return typeof value === "string" ? value : "";
}

function readList(value: unknown): string[] {
  return Array.isArray(value) ? value.map(readText).filter((text) => text !== "") : [];
}

function splitFrames(stack: string): string[] {
  return stack
    .split("\n")
    .map((line) => line.trim())
    .filter((line) => line.startsWith("at "));
}

/** Shows an error. */
export function ErrorDetail({ of }: { of: LoggedError }) {
  const { message, at, lines, own, others } = of;
  return (
    <div class="error-detail">
      <p class="bad wrap">{message}</p>
      {at !== "" && (
        <p class="mono error-at">
          <span class="wrap">{at}</span>
          <CopyButton text={at} label={t("Copy the place")} />
        </p>
      )}
      {lines.length > 0 && (
        <pre class="code" tabIndex={0}>
          {lines.join("\n")}
        </pre>
      )}
      {own.length > 0 && <Frames title={t("Frames of the project")} list={own} isOpen />}
      {others.length > 0 && <Frames title={t("All other frames")} list={others} />}
    </div>
  );
}

function Frames(props: { title: string; list: readonly string[]; isOpen?: boolean }) {
  return (
    <details open={props.isOpen}>
      <summary>{props.title}</summary>
      <pre class="code" tabIndex={0}>
        {props.list.join("\n")}
      </pre>
    </details>
  );
}
