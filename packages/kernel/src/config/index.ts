// Configuration: declared once, loaded from file, environment and flags, with precise error messages.
export {
  ADDRESS_FORMS,
  addressSchema,
  formatAddress,
  isLoopbackAddress,
  networkSchema,
  parseAddress,
  type ListenAddress,
} from "./address.ts";
export {
  addressKey,
  buildSchema,
  createServiceKeys,
  createTokenKeys,
  defineConfig,
  key,
  type CommandDefinition,
  type Commands,
  type ConfigDefinition,
  type ConfigKey,
  type ConfigKeys,
  type ConfigOf,
  type FileDefinition,
  type KeyOptions,
} from "./define.ts";
export { formatHelp } from "./help.ts";
export {
  JsonSyntaxError,
  parseJson,
  type JsonDocument,
  type JsonLimits,
  type JsonPath,
  type Position,
} from "./json.ts";
export {
  loadConfig,
  type ConfigFile,
  type ConfigSources,
  type Loaded,
  type LoadedCommand,
  type LoadedText,
} from "./load.ts";
export {
  ConfigError,
  formatPath,
  suggestName,
  validateJson,
  type ConfigProblem,
} from "./problem.ts";
export { formatReference } from "./reference.ts";
export { readPackageVersion } from "./version.ts";
