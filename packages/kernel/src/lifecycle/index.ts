// Lifecycle of programs and services, from the command line to the exit code.
export {
  SUPERVISED_VARIABLE,
  createParentLink,
  isServiceMessage,
  type ListenerReport,
  type ParentLink,
  type ServiceMessage,
} from "./parent.ts";
export { explainListenError, findFileHolder, findPortHolder, type Holder } from "./port-holder.ts";
export { runProgram, type ProgramHandlers } from "./program.ts";
export {
  runService,
  type DrainContext,
  type DrainHook,
  type Lifecycle,
  type ServiceOptions,
} from "./service.ts";
