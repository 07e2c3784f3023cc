// `platform app add`, `platform app remove`.
import {
  createApplication,
  nameRole,
  removeApplication,
  type ApplicationOptions,
} from "../client/application.ts";
import { formatEnvironmentFile } from "../client/environment-file.ts";
import { findTarget } from "../client/target.ts";
import { createFileDraft } from "@platform/kernel/files";

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
    const path = out ?? `${options.name}.env`;
    const text = formatEnvironmentFile({ lines, application: options, language: "curl", path });
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
