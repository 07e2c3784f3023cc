// `platform app add`, `platform app remove`.
import {
  createApplication,
  nameRole,
  removeApplication,
  type ApplicationOptions,
} from "../client/application.ts";
import { findTarget } from "../client/target.ts";
import { quoteShell } from "@platform/kernel/config";
import { createFileDraft } from "@platform/kernel/files";
import { formatVariables } from "../data-folder/private-file.ts";

const FETCH_TOKEN = [
  "fetch a token, which is valid for some minutes:",
  `  TOKEN=$(curl -s "$OIDC_TOKEN_URL" -u "$OIDC_CLIENT_ID:$OIDC_CLIENT_SECRET" -d grant_type=client_credentials | sed 's/.*"access_token":"\\([^"]*\\)".*/\\1/')`,
];

const HEADERS = `-H "Authorization: Bearer $TOKEN" -H 'Content-Type: application/json'`;
const SIGNATURE =
  '--aws-sigv4 "aws:amz:$AWS_REGION:s3" -u "$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" -H x-amz-content-sha256:UNSIGNED-PAYLOAD';

/** Options of {@link runAppAdd}. */
export interface AppAddOptions extends ApplicationOptions {
  data: string;
  /** File for the variables; undefined prints them. */
  out: string | undefined;
}

/** Creates the application, and prints its environment file once, or writes it with mode 0600. */
export async function runAppAdd(options: AppAddOptions): Promise<void> {
  const { out } = options;
  const target = await findTarget(options.data);
  // Before the application exists: its secrets cannot be read again if the file cannot be written.
  const draft = out === undefined ? undefined : createFileDraft(out);
  try {
    const lines = await createApplication(target, options);
    const text = formatVariables(lines) + formatExamples(options);
    if (draft === undefined) process.stdout.write(text);
    else draft.commit(text);
  } catch (error) {
    draft?.discard();
    throw error;
  }
  process.stderr.write(describe(options));
}

/** Removes an application's client, role, topic rules and keys. Its bucket and topics stay. */
export async function runAppRemove(data: string, name: string): Promise<void> {
  const isKnown = await removeApplication(await findTarget(data), name);
  if (!isKnown) throw new Error(`there is no application ${JSON.stringify(name)}`);
  process.stderr.write(
    `application ${name} removed; its bucket and topics are kept, and its tokens are revoked\n`,
  );
}

function describe({ name, bucket, topics, mail, redirects, out }: AppAddOptions): string {
  const role = nameRole(name);
  const parts = [
    `application ${name} added with the role ${role}`,
    ...(bucket === undefined ? [] : [`bucket ${bucket}`]),
    ...(topics.length === 0 ? [] : [`topics ${topics.join(", ")}`]),
    ...(mail ? ["sending mail"] : []),
    ...(redirects.length === 0 ? [] : [`sign-in of users at ${redirects.join(", ")}`]),
  ];
  const place =
    out === undefined
      ? `These variables are shown only once: save them in a file that only you can read, such as ${name}.env`
      : `Its variables are in ${out}, which only you can read; they cannot be shown again`;
  return `${parts.join("; ")}\n${place}\n`;
}

// Comments of the environment file: commands that work in a shell which has read it.
function formatExamples({ name, bucket, topics, mail, out }: AppAddOptions): string {
  const [pattern] = topics;
  const lines: string[] = [];
  if (pattern !== undefined || mail) lines.push(...FETCH_TOKEN);
  if (pattern !== undefined) {
    const body = JSON.stringify({ topic: pattern.replaceAll(/[*#]/g, "new"), payload: "hello" });
    lines.push(
      "publish a message:",
      `  curl "$MESSAGING_URL/api/v1/publish" ${HEADERS} -d '${body}'`,
    );
  }
  if (mail) {
    const body = JSON.stringify({ to: "ann@example.com", subject: "hello", text: "hello" });
    lines.push("send a mail:", `  curl "$MAIL_URL/api/v1/send" ${HEADERS} -d '${body}'`);
  }
  if (bucket !== undefined) {
    lines.push(
      "store an object:",
      `  curl -X PUT "$AWS_ENDPOINT_URL_S3/$S3_BUCKET/hello.txt" ${SIGNATURE} -H 'Content-Type: text/plain' -d hello`,
    );
  }
  if (lines.length === 0) return "";
  const all = [
    "",
    "Try it in a shell:",
    `  set -a; . ${formatSource(out ?? `${name}.env`)}; set +a`,
    ...lines,
  ];
  return all.map((line) => (line === "" ? "\n" : `# ${line}\n`)).join("");
}

// A name without a slash would be searched in PATH.
function formatSource(path: string): string {
  return quoteShell(/^\.{0,2}\//.test(path) ? path : `./${path}`);
}
