// How a service declares its configuration: one table of keys, from which everything else is derived.
import { z } from "zod";
import { isSecretName, LOG_LEVELS } from "../log/index.ts";
import { ADDRESS_FORMS, addressSchema } from "./address.ts";

/** What is said about a key beside its schema. */
export interface KeyOptions {
  /** One sentence: what it is and what follows from it. */
  description: string;
  /** `ms`, `bytes`, `requests/min` … */
  unit?: string;
  /** Environment names, the first that is set wins; default `PLATFORM_<SERVICE>_<KEY>`, `[]` for none. */
  env?: readonly string[];
  /** Flag without its dashes, `false` for none; default the key with dashes, none for secrets. */
  flag?: string | false;
  /** The value is never shown. Default: decided by the key's name. */
  secret?: boolean;
  /** Stands in the reference where the schema has no default that says it, such as "one per core". */
  defaultText?: string;
  /** Stands in messages and in the reference instead of what the schema says. */
  allowed?: string;
}

/** One declared key. */
export interface ConfigKey<Schema extends z.ZodType = z.ZodType> extends KeyOptions {
  schema: Schema;
}

/** Declared keys by their name in the file (snake_case). */
export type ConfigKeys = Record<string, ConfigKey>;

/** The configuration that keys describe. */
export type ConfigOf<Keys extends ConfigKeys> = {
  [Name in keyof Keys]: z.output<Keys[Name]["schema"]>;
};

/** A subcommand. */
export interface CommandDefinition<Keys extends ConfigKeys = ConfigKeys> {
  summary: string;
  /** Keys of this command alone: flags and environment, never the file. */
  options?: Keys;
  /** Names of its positional arguments; a name that ends in `?` may be left out, in `...` takes the rest. */
  arguments?: readonly string[];
  /** The service's own keys and file are neither read nor offered. */
  standalone?: boolean;
}

/** Commands by name; a name of two words (`overlay show`) is a command below a command. */
export type Commands = Record<string, CommandDefinition>;

/** Where the configuration file is looked for. */
export interface FileDefinition {
  /** Flag that names it, such as `config`. */
  flag: string;
  env: readonly string[];
  /** Read if it is there; when a file is named explicitly it must be there. */
  default?: string;
}

/** Everything that a program says about its configuration. */
export interface ConfigDefinition<
  Keys extends ConfigKeys = ConfigKeys,
  Subcommands extends Commands = Commands,
> {
  /** `gate`: stands in environment names and log lines. */
  service: string;
  /** `platform-gate` */
  program: string;
  version: string;
  /** One line for `--help`. */
  summary: string;
  keys: Keys;
  commands?: Subcommands;
  file?: FileDefinition;
  /** Whether the program does something without a command; default true. */
  runs?: boolean;
}

/** Declares a key. */
export function key<Schema extends z.ZodType>(
  schema: Schema,
  options: KeyOptions,
): ConfigKey<Schema> {
  return { schema, ...options };
}

/** Declares a listening address; its value is a ListenAddress. */
export function addressKey(defaultAddress: string, options: KeyOptions) {
  return key(addressSchema().prefault(defaultAddress), {
    allowed: `an address: ${ADDRESS_FORMS}`,
    ...options,
  });
}

/** Declares a program's configuration; the identity function, for its types. */
export function defineConfig<
  const Keys extends ConfigKeys,
  const Subcommands extends Commands = Record<never, never>,
>(definition: ConfigDefinition<Keys, Subcommands>): ConfigDefinition<Keys, Subcommands> {
  return definition;
}

/** The zod schema of a configuration file with these keys; unknown keys are refused. */
export function buildSchema<Keys extends ConfigKeys>(keys: Keys): z.ZodType<ConfigOf<Keys>> {
  const shape = Object.fromEntries(Object.entries(keys).map(([name, item]) => [name, item.schema]));
  return z.strictObject(shape) as unknown as z.ZodType<ConfigOf<Keys>>;
}

/** The keys that every service has: logs, traces, drain. */
export function createServiceKeys(service: string) {
  const prefix = `PLATFORM_${service.toUpperCase()}`;
  return {
    log_level: key(z.enum(LOG_LEVELS).default("info"), {
      description: "The least severe level that is logged.",
      env: [`${prefix}_LOG_LEVEL`, "PLATFORM_LOG_LEVEL"],
    }),
    log_format: key(z.enum(["auto", "json", "pretty"]).default("auto"), {
      description: "Form of the log lines; auto is readable on a terminal and JSON elsewhere.",
      env: [`${prefix}_LOG_FORMAT`, "PLATFORM_LOG_FORMAT"],
    }),
    otlp_endpoint: key(z.url({ protocol: /^https?$/ }).optional(), {
      description: "OTLP/HTTP collector that spans are sent to; without it none are sent.",
      env: [`${prefix}_OTEL_ENDPOINT`, "PLATFORM_OTLP_ENDPOINT"],
    }),
    drain_timeout_ms: key(z.int().min(0).max(3_600_000).default(30_000), {
      description: "How long a stopping service finishes what is under way before it ends it.",
      unit: "ms",
    }),
  };
}

/**
 * The keys that say whose tokens a service takes, as `createConfiguredVerifier` of the identity room reads them. `use` stands
 * in the description: a clause on what the tokens are for.
 */
export function createTokenKeys(service: string, use: string) {
  const listNames = (name: string) => [
    `PLATFORM_${service.toUpperCase()}_${name}`,
    `PLATFORM_${name}`,
  ];
  return {
    jwt_secret: key(z.string().min(1).optional(), {
      description: `Key of HS256 tokens; ${use}.`,
      env: listNames("JWT_SECRET"),
      secret: true,
    }),
    jwks_url: key(z.url({ protocol: /^https?$/ }).optional(), {
      description: "Key set of RS256 and ES256 tokens; needs jwt_issuer and jwt_audience.",
      env: listNames("JWKS_URL"),
    }),
    jwt_issuer: key(z.string().min(1).optional(), {
      description: "Value that `iss` must have.",
      env: listNames("JWT_ISSUER"),
    }),
    jwt_audience: key(z.string().min(1).optional(), {
      description: "Value that `aud` must hold.",
      env: listNames("JWT_AUDIENCE"),
    }),
  };
}

/** The environment names of a key, in the order in which they are looked at. */
export function listEnvNames(service: string, name: string, item: ConfigKey): readonly string[] {
  return item.env ?? [`PLATFORM_${service}_${name}`.toUpperCase().replaceAll("-", "_")];
}

/** The flag of a key, or undefined. */
export function getFlagName(name: string, item: ConfigKey): string | undefined {
  if (item.flag === false) return undefined;
  if (item.flag === undefined && isSecretKey(name, item)) return undefined;
  return item.flag ?? name.replaceAll("_", "-");
}

/** Whether the value of a key is never shown. */
export function isSecretKey(name: string, item: ConfigKey): boolean {
  return item.secret ?? isSecretName(name);
}
