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
  createDatabaseKeys,
  createLossKey,
  createOperationKeys,
  createRestoreCommand,
  createRestoreKeys,
  createServiceKeys,
  createTlsKeys,
  createTokenKeys,
  DATABASE_URL,
  defineConfig,
  key,
  type Commands,
  type ConfigDefinition,
  type ConfigKey,
  type ConfigKeys,
  type ConfigOf,
} from "./define.ts";
export { JsonSyntaxError, parseJson, type JsonDocument, type JsonPath } from "./json.ts";
export {
  loadConfig,
  type ConfigFile,
  type ConfigSources,
  type Loaded,
  type LoadedCommand,
} from "./load.ts";
export { ConfigError, suggestName, validateJson, type ConfigProblem } from "./problem.ts";
export { formatReference } from "./reference.ts";
export { nameProgram, quoteShell } from "./program-name.ts";
export { readPackageVersion } from "./version.ts";
