// The policy of browser form uploads ("POST Policy"): parsed and checked against the fields of the form.
import { S3Error } from "../../model/s3-error.ts";
import { readCredential } from "./credential.ts";
import { parseBasicTime, type SigningScope } from "@platform/s3/signature";

const POLICY_BYTES_MAX = 65_536;
const CONDITIONS_MAX = 200;
/** The format of expirations (ISO 8601, in UTC). */
const TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,9})?Z$/;
/** Fields that need no condition. */
const UNCHECKED_FIELDS: ReadonlySet<string> = new Set([
  "file",
  "policy",
  "x-amz-signature",
  "signature",
  "awsaccesskeyid",
]);

type Condition =
  | { kind: "eq" | "starts-with"; field: string; value: string }
  | { kind: "content-length-range"; min: number; max: number };

/** A policy document. */
export interface PostPolicy {
  expiresMs: number;
  conditions: readonly Condition[];
  /** Limits of the file's size; unlimited if the policy has none. */
  lengthMin: number;
  lengthMax: number;
}

/** The signature fields of a form. */
export interface FormClaim {
  accessKey: string;
  /** `undefined` for a signature of Version 2. */
  scope: SigningScope | undefined;
  signature: string;
  /** The signed policy in base64. */
  policy: string;
  /** `x-amz-security-token` */
  token: string | undefined;
}

/** Parses the signature of a form with lower-case names; `undefined` for an anonymous upload. */
export function readFormClaim(form: ReadonlyMap<string, string>): FormClaim | undefined {
  const isOlder = form.has("awsaccesskeyid");
  const isSigned = isOlder || form.has("signature") || form.has("x-amz-signature");
  if (!isSigned && !form.has("policy")) return undefined;
  const read = (name: string): string => {
    const value = form.get(name);
    if (value === undefined) throw missing(name);
    return value;
  };
  const policy = read("policy");
  const token = form.get("x-amz-security-token");
  if (isOlder) {
    const [accessKey, signature] = [read("awsaccesskeyid"), read("signature")];
    return { accessKey, scope: undefined, signature, policy, token };
  }
  if (read("x-amz-algorithm") !== "AWS4-HMAC-SHA256") {
    throw new S3Error("InvalidArgument", 'X-Amz-Algorithm only supports "AWS4-HMAC-SHA256"');
  }
  const { accessKey, scope } = readCredential(
    read("x-amz-credential"),
    (detail) => new S3Error("InvalidArgument", detail),
  );
  const date = read("x-amz-date");
  if (parseBasicTime(date) === undefined || !date.startsWith(scope.date)) {
    throw new S3Error(
      "InvalidArgument",
      "x-amz-date is not a valid time of the credential's date.",
    );
  }
  return { accessKey, scope, signature: read("x-amz-signature"), policy, token };
}

/** Parses the base64 text of a policy. Throws InvalidPolicyDocument. */
export function parsePostPolicy(encoded: string): PostPolicy {
  if (encoded.length > POLICY_BYTES_MAX) throw invalid("it is too long");
  let document: unknown;
  try {
    document = JSON.parse(Buffer.from(encoded, "base64").toString("utf8"));
  } catch {
    throw invalid("it is not base64 of JSON");
  }
  if (typeof document !== "object" || document === null) throw invalid("it is no object");
  const { expiration, conditions } = document as { expiration?: unknown; conditions?: unknown };
  const isTime = typeof expiration === "string" && TIME.test(expiration);
  const expiresMs = isTime ? Date.parse(expiration) : Number.NaN;
  if (Number.isNaN(expiresMs)) throw invalid("the expiration is missing or invalid");
  if (!Array.isArray(conditions) || conditions.length > CONDITIONS_MAX) {
    throw invalid("the conditions are missing or too many");
  }
  const read = conditions.flatMap(readCondition);
  let lengthMin = 0;
  let lengthMax = Infinity;
  for (const condition of read) {
    if (condition.kind !== "content-length-range") continue;
    lengthMin = Math.max(lengthMin, condition.min);
    lengthMax = Math.min(lengthMax, condition.max);
  }
  return { expiresMs, conditions: read, lengthMin, lengthMax };
}

/**
 * Checks a form (names in lower case, `bucket` added by the caller) against its policy. Throws AccessDenied with the failed
 * condition. The caller checks the size of the file.
 */
export function checkPostPolicy(
  policy: PostPolicy,
  form: ReadonlyMap<string, string>,
  nowMs: number,
): void {
  if (nowMs > policy.expiresMs) {
    throw new S3Error("AccessDenied", "Invalid according to Policy: Policy expired.");
  }
  const named = new Set<string>();
  for (const condition of policy.conditions) {
    if (condition.kind === "content-length-range") continue;
    named.add(condition.field);
    const value = form.get(condition.field) ?? "";
    const holds =
      condition.kind === "eq"
        ? value === condition.value
        : value.startsWith(condition.value) ||
          // A list of content types passes if each of them does.
          (condition.field === "content-type" &&
            value.split(",").every((item) => item.trim().startsWith(condition.value)));
    if (!holds) {
      throw new S3Error(
        "AccessDenied",
        `Invalid according to Policy: Policy Condition failed: ["${condition.kind}", "$${condition.field}", "${condition.value}"]`,
      );
    }
  }
  for (const name of form.keys()) {
    if (named.has(name) || UNCHECKED_FIELDS.has(name) || name.startsWith("x-ignore-")) continue;
    throw new S3Error("AccessDenied", `Invalid according to Policy: Extra input fields: ${name}`);
  }
}

function readCondition(item: unknown): Condition[] {
  if (Array.isArray(item)) {
    const [given, first, second] = item as unknown[];
    const operator = typeof given === "string" ? given.toLowerCase() : given;
    if (operator === "content-length-range") {
      const [min, max] = [Number(first), Number(second)];
      if (!Number.isSafeInteger(min) || !Number.isSafeInteger(max) || min < 0 || max < min) {
        throw invalid("content-length-range is not a range");
      }
      return [{ kind: "content-length-range", min, max }];
    }
    if (operator !== "eq" && operator !== "starts-with") {
      throw invalid("an operator must be eq, starts-with or content-length-range");
    }
    if (typeof first !== "string" || !first.startsWith("$") || typeof second !== "string") {
      throw invalid(`${operator} requires a $field and a string`);
    }
    return [{ kind: operator, field: first.slice(1).toLowerCase(), value: second }];
  }
  if (typeof item !== "object" || item === null)
    throw invalid("a condition must be a list or an object");
  const entries = Object.entries(item);
  if (entries.length !== 1) throw invalid("a simple condition must have exactly one property");
  return entries.map(([field, value]) => {
    if (typeof value !== "string") throw invalid(`the value of ${field} must be a string`);
    return { kind: "eq", field: field.toLowerCase(), value };
  });
}

function invalid(detail: string): S3Error {
  return new S3Error("InvalidPolicyDocument", `Invalid Policy: ${detail}.`);
}

function missing(name: string): S3Error {
  return new S3Error("InvalidArgument", `Bucket POST must contain a field named '${name}'.`);
}
