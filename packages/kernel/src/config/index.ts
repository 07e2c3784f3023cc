// Configuration: declared once, read from file, environment and flags, explained when it is wrong.
export {
  ADDRESS_FORMS,
  addressSchema,
  formatAddress,
  isLoopbackAddress,
  networkSchema,
  parseAddress,
} from "./address.ts";
export type { ListenAddress } from "./address.ts";
export {
  addressKey,
  buildSchema,
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  key,
} from "./define.ts";
export type {
  CommandDefinition,
  Commands,
  ConfigDefinition,
  ConfigKey,
  ConfigKeys,
  ConfigOf,
  FileDefinition,
  KeyOptions,
} from "./define.ts";
export { formatHelp } from "./help.ts";
export { JsonSyntaxError, parseJson } from "./json.ts";
export type { JsonDocument, JsonLimits, JsonPath, Position } from "./json.ts";
export { loadConfig } from "./load.ts";
export type { ConfigFile, ConfigSources, Loaded, LoadedCommand, LoadedText } from "./load.ts";
export { ConfigError, formatPath, suggestName, validateJson } from "./problem.ts";
export type { ConfigProblem } from "./problem.ts";
export { formatReference } from "./reference.ts";
export { readPackageVersion } from "./version.ts";
