// Variables that the process of a project inherits.
import { readFileSync } from "node:fs";
import { parseEnv } from "node:util";

type Environment = Readonly<Record<string, string | undefined>>;

/**
 * Names that are settings of the platform, of its services, and of services in general. The launcher sets the one of Bun,
 * which other versions of Bun may not know: they do not start then.
 */
const PLATFORM_NAME = /^(?:PLATFORM_|BUN_JSC_maxNumWasmFastMemories$)/;
/** Settings of services of projects, and those that all programs share: telemetry, the log, the issuer of tokens. */
const SHARED_NAME =
  /^PLATFORM_(?:SERVICE_\w+|LOG_\w+|OTLP_\w+|JWKS_URL|JWT_(?:ISSUER|AUDIENCE)|REVOCATIONS_\w+|FORM|RUNTIME|TEST_\w+)$/;

/**
 * Returns the variables of `base` that are not settings of the platform, and the shared settings of `own`, the platform's
 * environment. Credentials of the platform's services are not a project's.
 */
export function selectInherited(base: Environment, own: Environment): Record<string, string> {
  const variables: Record<string, string> = {};
  for (const [name, value] of Object.entries(base)) {
    if (value !== undefined && !PLATFORM_NAME.test(name)) variables[name] = value;
  }
  for (const [name, value] of Object.entries(own)) {
    if (value !== undefined && SHARED_NAME.test(name)) variables[name] = value;
  }
  return variables;
}

/** Reads a file of variables, as shells and `node --env-file` read it. Throws an explanation if it cannot be read. */
export function readEnvironmentFile(path: string): Environment {
  try {
    return parseEnv(readFileSync(path, "utf8"));
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new Error(`the environment file ${path} cannot be read: ${reason}`, { cause: error });
  }
}
