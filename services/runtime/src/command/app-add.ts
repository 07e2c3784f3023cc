// `platform app add`, `platform app remove`.
import {
  createApplication,
  nameRole,
  removeApplication,
  type ApplicationOptions,
} from "../client/application.ts";
import { findTarget } from "../client/target.ts";
import { formatVariables } from "../data-folder/private-file.ts";

/** Options of {@link runAppAdd}. */
export interface AppAddOptions extends ApplicationOptions {
  data: string;
}

/** Creates the application, and prints its environment file once. */
export async function runAppAdd(options: AppAddOptions): Promise<void> {
  const lines = await createApplication(await findTarget(options.data), options);
  process.stderr.write(describe(options));
  process.stdout.write(formatVariables(lines));
}

/** Removes an application's client, role, topic rules and keys. Its bucket and topics stay. */
export async function runAppRemove(data: string, name: string): Promise<void> {
  const isKnown = await removeApplication(await findTarget(data), name);
  if (!isKnown) throw new Error(`there is no application ${JSON.stringify(name)}`);
  process.stderr.write(
    `application ${name} removed; its bucket and topics are kept, and its tokens are revoked\n`,
  );
}

function describe({ name, bucket, topics, mail, redirects }: ApplicationOptions): string {
  const role = nameRole(name);
  const parts = [
    `application ${name} added with the role ${role}`,
    ...(bucket === undefined ? [] : [`bucket ${bucket}`]),
    ...(topics.length === 0 ? [] : [`topics ${topics.join(", ")}`]),
    ...(mail ? ["sending mail"] : []),
    ...(redirects.length === 0 ? [] : [`sign-in of users at ${redirects.join(", ")}`]),
  ];
  return `${parts.join("; ")}\nThe following is shown only once: save it, for example with "platform app add ${name} > ${name}.env"\n`;
}
