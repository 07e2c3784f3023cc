// XML documents of STS ("Making query requests" in the STS API reference).
import type { AssumedRole } from "../../access/web-identity.ts";
import type { S3Error } from "../../model/s3-error.ts";
import type { S3Answer } from "../answer.ts";
import { STS_CORS } from "../cross-origin.ts";
import { tag, wrap, XML_DECLARATION } from "../wire/xml.ts";

const NAMESPACE = "https://sts.amazonaws.com/doc/2011-06-15/";
const HEADERS = [["Content-Type", "text/xml"], ["Cache-Control", "no-store"], STS_CORS] as const;

/** The answer with the credentials of a session. */
export function answerAssumedRole(assumed: AssumedRole, requestId: string): S3Answer {
  const { key, arn, id, subject, audience, issuer } = assumed;
  const credentials =
    tag("AccessKeyId", key.accessKey) +
    tag("SecretAccessKey", key.secret) +
    tag("SessionToken", key.sessionToken) +
    tag("Expiration", new Date(key.expiresMs).toISOString().replace(/\.\d{3}Z$/, "Z"));
  const result =
    tag("SubjectFromWebIdentityToken", subject) +
    tag("Audience", audience) +
    wrap("AssumedRoleUser", tag("Arn", arn) + tag("AssumedRoleId", id)) +
    wrap("Credentials", credentials) +
    tag("Provider", issuer);
  const inner =
    wrap("AssumeRoleWithWebIdentityResult", result) +
    wrap("ResponseMetadata", tag("RequestId", requestId));
  return createAnswer(200, "AssumeRoleWithWebIdentityResponse", inner);
}

/** The answer of an error. */
export function answerStsError(error: S3Error, requestId: string): S3Answer {
  const described =
    tag("Type", error.status < 500 ? "Sender" : "Receiver") +
    tag("Code", error.code) +
    tag("Message", error.message);
  const inner = wrap("Error", described) + tag("RequestId", requestId);
  const answer = createAnswer(error.status, "ErrorResponse", inner);
  return { ...answer, headers: [...HEADERS, ...error.headers] };
}

function createAnswer(status: number, root: string, inner: string): S3Answer {
  const body = `${XML_DECLARATION}<${root} xmlns="${NAMESPACE}">${inner}</${root}>`;
  return { status, headers: HEADERS, body };
}
