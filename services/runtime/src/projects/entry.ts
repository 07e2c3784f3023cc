// A project as a service of `platform up`: with a host, an application's credentials and a data folder of its own.
import { existsSync, mkdirSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { dirname, join } from "node:path";
import { pathToFileURL } from "node:url";
import { formatAddress, nameProgram } from "@platform/kernel/config";
import type { Development } from "@platform/service/host";
import { ApiError } from "../client/api-client.ts";
import { createApplication, removeApplication } from "../client/application.ts";
import type { Target } from "../client/target.ts";
import { formatFolder } from "../data-folder/data-folder.ts";
import { replaceFileSync } from "@platform/kernel/files";
import { formatVariables, parseVariables } from "../data-folder/private-file.ts";
import type { RunningState } from "../data-folder/running-file.ts";
import { MAIN_FILE, type Project } from "../project/project.ts";
import {
  formatHost,
  formatLocalHost,
  formatUrl,
  getAddress,
  isRunning,
  type EntryContext,
  type ServiceEntry,
} from "../services/entry.ts";
import { formatConsoleUrl } from "../services/console.ts";
import { formatIssuer, REVOCATIONS_TOKEN, wireIdentity } from "../services/identity.ts";
import { PROJECT_ADDRESS, PROJECT_KEY } from "../services/project.ts";
import { PROTOCOL, readProtocol } from "../watch/messages.ts";
import { openProjectData } from "./former-databases.ts";
import { noteLaunch, readOwnVariables } from "./own-variables.ts";
import { getProjectData, type ProjectKind } from "./records.ts";

/** Path of the route that finishes sign-ins. */
const CALLBACK = "/callback";
/** The supervised program of an installed version: the subpath of its package. */
const PROGRAM = "@platform/service/supervised";
const OWN_PROGRAM = new URL("../watch/supervised.ts", import.meta.url).href;

/** Options of {@link createProjectEntry}. */
export interface ProjectEntryOptions {
  kind: ProjectKind;
  /** The state of the platform's services, of which those in `after` run. */
  readState: () => RunningState;
  /** The variables that its process inherits; called before each start. */
  inherit: () => Record<string, string>;
  /** True if databases of an earlier version in the data folder are its own. */
  ownsFormerData: () => boolean;
}

/** Creates the entry. Its address is that of the context's {@link PROJECT_KEY}. */
export function createProjectEntry(
  project: Project,
  { kind, readState, inherit, ownsFormerData }: ProjectEntryOptions,
): ServiceEntry {
  const { name, file } = project;
  let variables: Readonly<Record<string, string>> = {};
  let own: Readonly<Record<string, string>> = {};
  return {
    name,
    label: name,
    project: { folder: dirname(file), kind },
    main: OWN_PROGRAM,
    listeners: [
      {
        name: "http",
        key: PROJECT_KEY,
        env: "PLATFORM_PROJECT_ADDR",
        default: PROJECT_ADDRESS,
        description: "Listening address of the project.",
      },
    ],
    probes: "http",
    credentials: [],
    uses: [REVOCATIONS_TOKEN],
    // The gateway gets its route when the project starts, and loses it when the project leaves.
    routes: [],
    after: ["auth", "vault", "pulse", "notify"],
    needsReady: true,
    prepare: async (context) => {
      own = readOwnVariables(context.dataDir, name);
      const moved = openProjectData(context.dataDir, name, ownsFormerData());
      const { notes, ...prepared } = await prepareCredentials(project, context, readState);
      variables = prepared.variables;
      return [...moved, ...notes];
    },
    refuse: (message) => refuseMessage(message, dirname(file)),
    configure: (context) => {
      own = readAgain(own, () => readOwnVariables(context.dataDir, name));
      return {
        ...describeProgram(project, context.dataDir),
        inherited: { ...inherit(), ...own },
        env: {
          ...variables,
          ...describeAddresses(readState()),
          ...describeListener(name, kind, context),
        },
      };
    },
    onLaunch: ({ dataDir }) => noteLaunch(dataDir, name),
    describe: (context) => {
      const docs = `docs ${formatUrl(getAddress(context, PROJECT_KEY))}/api/docs`;
      const path = formatFolder(getCredentialsPath(context, name));
      const keys = Object.keys(variables).length === 0 ? "" : ` · credentials ${path}`;
      const gateway = isRunning("gate", context) ? ` · ${formatOrigin(project, context)}` : "";
      return `reloaded on change${gateway} · ${docs}${keys}`;
    },
    trials: (context) => [
      { command: `curl ${formatLocalHost(getAddress(context, PROJECT_KEY))}`, meaning: file },
    ],
  };
}

/** The program of a project's process, and the folder in which it runs. */
function describeProgram({ name, file }: Project, dataDir: string) {
  const folder = dirname(file);
  // A folder that was deleted may come back: until then the process reports what is missing.
  const cwd = existsSync(folder) ? folder : getProjectData(dataDir, name);
  return { main: findProgram(folder), args: [file], cwd };
}

/** A project restarts with the variables of its last start while their file is damaged, which the console says. */
function readAgain<Value>(last: Value, read: () => Value): Value {
  try {
    return read();
  } catch {
    return last;
  }
}

/**
 * The program that runs a project: that of the version that the project has installed, so that its code and the package it
 * imports are of one version; otherwise that of this installation.
 */
function findProgram(folder: string): string {
  try {
    return pathToFileURL(createRequire(join(folder, MAIN_FILE)).resolve(PROGRAM)).href;
  } catch {
    return OWN_PROGRAM;
  }
}

/** The reason why this platform does not understand a message of a project's process; undefined if it does. */
function refuseMessage(message: unknown, folder: string): string | undefined {
  const protocol = readProtocol(message);
  return protocol === PROTOCOL ? undefined : describeProtocol(protocol, folder);
}

/** Explains that a project and the platform speak different versions of their messages. */
export function describeProtocol(protocol: number | undefined, folder: string): string {
  const spoken = protocol === undefined ? "an earlier version" : `version ${protocol}`;
  const remedy =
    protocol !== undefined && protocol > PROTOCOL
      ? "update the platform"
      : `run "${nameProgram("platform")} project update" in ${folder}`;
  return `it speaks ${spoken} of the messages between projects and the platform, and this platform version ${PROTOCOL}: ${remedy}`;
}

interface Prepared {
  variables: Readonly<Record<string, string>>;
  notes: string[];
}

// Stored credentials are used as long as identity returns users to the same address.
async function prepareCredentials(
  project: Project,
  context: EntryContext,
  readState: () => RunningState,
): Promise<Prepared> {
  const { name } = project;
  if (!isRunning("auth", context)) {
    return { variables: {}, notes: [`${name} has no credentials: identity does not run`] };
  }
  const path = getCredentialsPath(context, name);
  const redirects = [
    `${formatOrigin(project, context)}${CALLBACK}`,
    `http://localhost:${getAddress(context, PROJECT_KEY).port}${CALLBACK}`,
  ];
  const target: Target = {
    dataDir: context.dataDir,
    state: readState(),
    credentials: new Map(Object.entries(context.credentials)),
  };
  if (existsSync(path)) {
    const stored = parseVariables(readFileSync(path, "utf8"));
    const isCurrent =
      stored["OIDC_REDIRECT_URL"] === redirects[0] &&
      stored["OIDC_ISSUER"] === formatIssuer(context, process.env);
    if (isCurrent) return { variables: stored, notes: [] };
    await removeApplication(target, name);
  }
  try {
    const created = await createApplication(target, {
      name,
      redirects: isRunning("gate", context) ? redirects : redirects.slice(1),
      bucket: isRunning("vault", context) ? `app-${name}` : undefined,
      topics: isRunning("pulse", context) ? [name, `${name}.#`] : [],
      mail: isRunning("notify", context),
    });
    mkdirSync(join(context.dataDir, "applications"), { recursive: true, mode: 0o700 });
    replaceFileSync(path, formatVariables(created));
    return { variables: Object.fromEntries(created), notes: [] };
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    // The application of someone else is not replaced.
    return { variables: {}, notes: [`${name} has no credentials: ${error.message}`] };
  }
}

/** A kept project runs when its author is away, and one with a domain is for others: their answers have no details. */
function describeDevelopment(kind: ProjectKind, context: EntryContext): Development {
  if (context.domain !== undefined) return { hasDetails: false };
  const hasConsole = kind !== "kept" && isRunning("gate", context);
  const consoleUrl = hasConsole ? formatConsoleUrl(context) : undefined;
  return { hasDetails: kind !== "kept", consoleUrl };
}

function describeListener(
  name: string,
  kind: ProjectKind,
  context: EntryContext,
): Record<string, string> {
  const { host, port } = getAddress(context, PROJECT_KEY);
  return {
    ...wireIdentity("service", context, process.env),
    PLATFORM_SERVICE_NAME: name,
    PLATFORM_SERVICE_PORT: String(port),
    ...(host === undefined ? {} : { PLATFORM_SERVICE_HOST: host }),
    PLATFORM_DATA_DIR: getProjectData(context.dataDir, name),
    PLATFORM_PROJECT_DEVELOPMENT: JSON.stringify(describeDevelopment(kind, context)),
  };
}

// Ports may have changed since the credentials were stored.
function describeAddresses({ services }: RunningState): Record<string, string> {
  const variables = { pulse: "MESSAGING_URL", notify: "MAIL_URL", vault: "AWS_ENDPOINT_URL_S3" };
  return Object.fromEntries(
    Object.entries(variables).flatMap(([service, variable]) => {
      const url = services.find(({ name }) => name === service)?.url ?? "";
      return url === "" ? [] : [[variable, url]];
    }),
  );
}

/** The address of a project for people: its host at the gateway, or its own without a gateway. */
export function formatOrigin({ name }: Pick<Project, "name">, context: EntryContext): string {
  if (!isRunning("gate", context)) {
    return `http://${formatAddress({ ...getAddress(context, PROJECT_KEY), host: "localhost" })}`;
  }
  const host = formatHost(name, context);
  if (context.domain !== undefined) return `https://${host}`;
  return `http://${host}:${getAddress(context, "gateway_addr").port}`;
}

/** The file of a project's credentials. */
export function getCredentialsPath(context: Pick<EntryContext, "dataDir">, name: string): string {
  return join(context.dataDir, "applications", `${name}.env`);
}
