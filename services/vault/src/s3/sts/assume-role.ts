// AssumeRoleWithWebIdentity: an unsigned form with a token, answered with temporary credentials.
import { DURATION_SECONDS, type WebIdentityRequest } from "../../access/web-identity.ts";
import { S3Error } from "../../model/s3-error.ts";
import type { OperationHandler } from "../context.ts";
import { receiveDocument } from "../payload.ts";
import { answerAssumedRole } from "./answer.ts";

const ACTION = "AssumeRoleWithWebIdentity";
const VERSION = "2011-06-15";
const FORM_BYTES_MAX = 65_536;
const SESSION_NAME = /^[\w+=,.@-]{2,64}$/;
/** Limits of the STS API reference. */
const TOKEN_CHARACTERS = { min: 4, max: 20_000 };
const POLICY_CHARACTERS_MAX = 2_048;
const PARAMETERS: ReadonlySet<string> = new Set([
  "Action",
  "Version",
  "RoleArn",
  "RoleSessionName",
  "WebIdentityToken",
  "DurationSeconds",
  "Policy",
]);

export const assumeRoleWithWebIdentity: OperationHandler = async (context) => {
  const body = await receiveDocument(context, { bytesMax: FORM_BYTES_MAX });
  const request = readForm(new URLSearchParams(body.toString("utf8")));
  const assumed = await context.api.webIdentity.assumeRole(request);
  context.api.log.info("session key issued", {
    access_key: assumed.key.accessKey,
    role: assumed.arn,
    subject: assumed.subject,
    request_id: context.request.id,
  });
  return answerAssumedRole(assumed, context.request.id);
};

function readForm(form: URLSearchParams): WebIdentityRequest {
  checkAction(form);
  for (const name of form.keys()) {
    if (!PARAMETERS.has(name)) {
      throw new S3Error(
        "InvalidParameterValue",
        `The parameter ${name.slice(0, 64)} is not supported.`,
      );
    }
    if (form.getAll(name).length > 1) throw invalid(name, "is given twice");
  }
  const token = read(form, "WebIdentityToken");
  if (token.length < TOKEN_CHARACTERS.min || token.length > TOKEN_CHARACTERS.max) {
    throw invalid("WebIdentityToken", "has an invalid length");
  }
  const sessionName = read(form, "RoleSessionName");
  if (!SESSION_NAME.test(sessionName)) {
    throw invalid("RoleSessionName", "must have 2 to 64 letters, digits or _ + = , . @ -");
  }
  const policy = form.get("Policy") ?? undefined;
  if (policy !== undefined && policy.length > POLICY_CHARACTERS_MAX) {
    throw invalid("Policy", `has more than ${POLICY_CHARACTERS_MAX} characters`);
  }
  return {
    token,
    roleArn: read(form, "RoleArn"),
    sessionName,
    durationSeconds: readDuration(form.get("DurationSeconds")),
    policy,
  };
}

function checkAction(form: URLSearchParams): void {
  const action = form.get("Action");
  const version = form.get("Version");
  if (action === null) throw new S3Error("MissingAction");
  if (action === ACTION && version === VERSION) return;
  const named = `${action.slice(0, 64)} of version ${(version ?? "").slice(0, 64)}`;
  throw new S3Error("InvalidAction", `The action ${named} is not available.`);
}

function readDuration(text: string | null): number {
  if (text === null) return DURATION_SECONDS.default;
  const seconds = /^\d{1,9}$/.test(text) ? Number(text) : Number.NaN;
  const { min, max } = DURATION_SECONDS;
  if (seconds >= min && seconds <= max) return seconds;
  throw invalid("DurationSeconds", `must be a number from ${min} to ${max}`);
}

function read(form: URLSearchParams, name: string): string {
  const value = form.get(name);
  if (value === null || value === "") throw invalid(name, "is missing");
  return value;
}

function invalid(name: string, reason: string): S3Error {
  return new S3Error("ValidationError", `${name} ${reason}.`);
}
