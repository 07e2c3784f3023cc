// Reads the values of headers.
import type { Frame } from "./frame/frame.ts";
import { StompError } from "./frame/stomp-error.ts";

/** A header that the frame must have. Throws a `StompError`. */
export function requireHeader({ command, headers }: Frame, name: string): string {
  const value = headers.get(name);
  if (value !== undefined) return value;
  throw new StompError("invalid", `${command} needs the header ${name}`);
}

/** An integer; undefined without the header. Throws a `StompError`. */
export function readInteger(
  { headers }: Pick<Frame, "headers">,
  name: string,
  min: number,
  max: number,
): number | undefined {
  const text = headers.get(name);
  if (text === undefined) return undefined;
  const number = /^-?\d{1,16}$/.test(text) ? Number(text) : Number.NaN;
  if (number >= min && number <= max) return number;
  throw new StompError("invalid", `the header ${name} is an integer from ${min} to ${max}`);
}

/** `true` or `false`; false without the header. Throws a `StompError`. */
export function readFlag({ headers }: Pick<Frame, "headers">, name: string): boolean {
  const text = headers.get(name);
  if (text === undefined || text === "false") return false;
  if (text === "true") return true;
  throw new StompError("invalid", `the header ${name} is true or false`);
}
