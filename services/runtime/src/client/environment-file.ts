// The environment file of an application: its variables, and commented examples that work with them.
import { quoteShell } from "@platform/kernel/config";
import { formatVariables } from "../data-folder/private-file.ts";
import type { ApplicationOptions, Lines } from "./application.ts";
import { formatGo, formatNode, formatPython, type ExampleUse } from "./environment-examples.ts";

/** Languages of examples. */
export const EXAMPLE_LANGUAGES = ["curl", "node", "python", "go"] as const;
/** A language of examples. */
type ExampleLanguage = (typeof EXAMPLE_LANGUAGES)[number];

const FETCH_TOKEN = [
  "fetch a token, which is valid for some minutes:",
  `  TOKEN=$(curl -s "$OIDC_TOKEN_URL" -u "$OIDC_CLIENT_ID:$OIDC_CLIENT_SECRET" -d grant_type=client_credentials | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
];

const HEADERS = `-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'`;
const SIGNATURE =
  '--aws-sigv4 "aws:amz:$AWS_REGION:s3" -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -H x-amz-content-sha256:UNSIGNED-PAYLOAD';

/** Contents of an environment file. */
export interface EnvironmentFileOptions {
  lines: Lines;
  application: Pick<ApplicationOptions, "name" | "bucket" | "topics" | "mail">;
  language: ExampleLanguage;
  /** The path of the file, as a shell in its reader's folder names it. */
  path: string;
}

/** Formats the file, which shells and readers of `.env` files understand. */
export function formatEnvironmentFile(options: EnvironmentFileOptions): string {
  const { lines, application, language, path } = options;
  const examples = listExamples(application, language, path);
  const comments = examples.map((line) => (line === "" ? "\n" : `# ${line}\n`)).join("");
  return formatVariables(lines) + comments;
}

function listExamples(
  { bucket, topics, mail }: EnvironmentFileOptions["application"],
  language: ExampleLanguage,
  path: string,
): string[] {
  const [pattern] = topics;
  const use: ExampleUse = {
    message:
      pattern === undefined
        ? undefined
        : { topic: pattern.replaceAll(/[*#]/g, "new"), payload: "hello" },
    mail: mail ? { to: "ann@example.com", subject: "hello", text: "hello" } : undefined,
    hasBucket: bucket !== undefined,
  };
  if (use.message === undefined && use.mail === undefined && !use.hasBucket) return [];
  switch (language) {
    case "curl":
      return ["", ...formatCurl(use, path)];
    case "node":
      return ["", ...formatNode(use, quoteShell(path))];
    case "python":
      return ["", ...formatPython(use, formatSource(path))];
    case "go":
      return ["", ...formatGo(use, formatSource(path))];
    default:
      return language satisfies never;
  }
}

// Commands that work in a shell which has read the file.
function formatCurl({ message, mail, hasBucket }: ExampleUse, path: string): string[] {
  const lines = ["Try it in a shell:", `  set -a; . ${formatSource(path)}; set +a`];
  if (message !== undefined || mail !== undefined) lines.push(...FETCH_TOKEN);
  if (message !== undefined) {
    lines.push(
      "publish a message:",
      `  curl "$MESSAGING_URL/api/v1/publish" ${HEADERS} -d '${JSON.stringify(message)}'`,
    );
  }
  if (mail !== undefined) {
    lines.push(
      "send a mail:",
      `  curl "$MAIL_URL/api/v1/send" ${HEADERS} -d '${JSON.stringify(mail)}'`,
    );
  }
  if (hasBucket) {
    lines.push(
      "store an object:",
      `  curl -X PUT "$AWS_ENDPOINT_URL_S3/$S3_BUCKET/hello.txt" ${SIGNATURE} -H 'Content-Type: text/plain' -d hello`,
    );
  }
  return lines;
}

// A name without a slash would be searched in PATH.
function formatSource(path: string): string {
  return quoteShell(/^\.{0,2}\//.test(path) ? path : `./${path}`);
}
