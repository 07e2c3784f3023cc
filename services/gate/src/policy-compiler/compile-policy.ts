// Compiles a policy to a WebAssembly module: the fixed matcher with the rules as data.
import { type PolicyPlace, readPolicyText } from "@platform/kernel/route-rules";
import type { PolicyRule } from "../shared-state/index.ts";
import { MATCHER_MODULE } from "./matcher-module.ts";
import { DATA_AT, encodeRules } from "./rule-data.ts";

/** Maximum size of a policy file. */
const POLICY_BYTES_MAX = 1_048_576;
const RULES_MAX = 10_000;
const PAGE_BYTES = 65_536;
const PREAMBLE_BYTES = 8;
const MEMORY_SECTION = 5;
const DATA_SECTION = 11;
const I32_CONST = 0x41;
const END = 0x0b;
const BYTE_ORDER_MARK = "\ufeff";

/** A fault of a policy file. Lines and columns start at 1. */
interface PolicyFileFault {
  readonly line: number;
  readonly column: number;
  readonly message: string;
}

/** The result of reading a policy file. */
export type ReadPolicy =
  | { readonly rules: readonly PolicyRule[]; readonly faults?: undefined }
  | { readonly faults: readonly PolicyFileFault[] };

/**
 * Reads a policy file in the language of the route field `policy`. Rules for other places are left out; without a place, a
 * condition on it is a fault.
 */
export function readPolicyFile(content: Buffer, place: Partial<PolicyPlace>): ReadPolicy {
  if (content.length > POLICY_BYTES_MAX)
    return fault(1, 1, `the file has ${content.length} bytes; the limit is ${POLICY_BYTES_MAX}`);
  const text = content.toString("utf8");
  const plain = text.startsWith(BYTE_ORDER_MARK) ? text.slice(1) : text;
  const { rules, faults } = readPolicyText(plain);
  const found: PolicyFileFault[] = [...listControls(plain), ...faults];
  if (rules.length > RULES_MAX)
    found.push({
      line: 1,
      column: 1,
      message: `expected at most ${RULES_MAX} rules, not ${rules.length}`,
    });
  const kept: PolicyRule[] = [];
  for (const { rule, place: condition } of rules) {
    if (condition === undefined) kept.push(rule);
    else if (place[condition.name] === undefined) {
      const line = plain.split("\n").findIndex((one) => one.includes(condition.name)) + 1;
      const message = `the condition on ${condition.name} requires --${condition.name}`;
      if (!found.some((other) => other.message === message))
        found.push({ line, column: 1, message });
    } else if (place[condition.name] === condition.equals) kept.push(rule);
  }
  if (found.length === 0) return { rules: kept };
  return { faults: found.sort((a, b) => a.line - b.line || a.column - b.column) };
}

/** The module of a policy. It denies what the rules deny, and lets everything else continue. */
export function compilePolicy(rules: readonly PolicyRule[]): Buffer {
  const matcher = Buffer.from(MATCHER_MODULE, "base64");
  const data = encodeRules(rules);
  const pages = Math.ceil((DATA_AT + data.length) / PAGE_BYTES);
  const parts: Buffer[] = [matcher.subarray(0, PREAMBLE_BYTES)];
  for (let at = PREAMBLE_BYTES; at < matcher.length;) {
    const id = matcher[at]!;
    const [size, from] = readUnsigned(matcher, at + 1);
    const section = matcher.subarray(at, from + size);
    parts.push(
      id === MEMORY_SECTION
        ? encodeSection(id, Buffer.from([1, 0, ...encodeUnsigned(pages)]))
        : section,
    );
    at = from + size;
  }
  const place = [1, 0, I32_CONST, ...encodeSigned(DATA_AT), END, ...encodeUnsigned(data.length)];
  parts.push(encodeSection(DATA_SECTION, Buffer.concat([Buffer.from(place), data])));
  return Buffer.concat(parts);
}

function fault(line: number, column: number, message: string): ReadPolicy {
  return { faults: [{ line, column, message }] };
}

// No path and no field value contains them: such a rule could never match.
function listControls(text: string): PolicyFileFault[] {
  return text.split("\n").flatMap((line, index) => {
    const at = line.replace(/\r$/, "").search(/[^\P{Cc}\t]/u);
    return at === -1
      ? []
      : [{ line: index + 1, column: at + 1, message: "the line contains a control character" }];
  });
}

function encodeSection(id: number, contents: Buffer): Buffer {
  return Buffer.concat([Buffer.from([id, ...encodeUnsigned(contents.length)]), contents]);
}

// LEB128 (WebAssembly Core 2.0, section 5.2.2).
function readUnsigned(bytes: Buffer, at: number): [value: number, next: number] {
  let value = 0;
  let next = at;
  for (let shift = 0; ; shift += 7) {
    const byte = bytes[next++]!;
    value |= (byte & 0x7f) << shift;
    if (byte < 0x80) return [value, next];
  }
}

function encodeUnsigned(value: number): number[] {
  return value < 0x80 ? [value] : [(value & 0x7f) | 0x80, ...encodeUnsigned(value >>> 7)];
}

// Of numbers that are not negative: one more bit, which is 0.
function encodeSigned(value: number): number[] {
  return value < 0x40 ? [value] : [(value & 0x7f) | 0x80, ...encodeSigned(value >>> 7)];
}
