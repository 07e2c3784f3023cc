// Lifecycle of programs and services, from the command line to the exit code.
export type { DrainHook } from "./drain.ts";
export { createEmbeddedLifecycle, type EmbeddedLifecycle } from "./embedded.ts";
export {
  createParentLink,
  SUPERVISED_VARIABLE,
  isSecretsAnswer,
  isSecretsMessage,
  isServiceMessage,
  type ListenerReport,
  type SecretsAnswer,
  type SecretsMessage,
} from "./parent.ts";
export { explainListenError, findFileHolder, holdsFile, type Holder } from "./port-holder.ts";
export { runProgram } from "./program.ts";
export { runService, type Lifecycle } from "./service.ts";
