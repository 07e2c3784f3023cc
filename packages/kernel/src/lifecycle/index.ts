// Lifecycle: from the command line to the exit code.
export { SUPERVISED_VARIABLE, createParentLink, isServiceMessage } from "./parent.ts";
export type { ListenerReport, ParentLink, ServiceMessage } from "./parent.ts";
export { explainListenError, findFileHolder, findPortHolder } from "./port-holder.ts";
export type { Holder } from "./port-holder.ts";
export { runProgram } from "./program.ts";
export type { ProgramHandlers } from "./program.ts";
export { exitCodes, runService } from "./service.ts";
export type { DrainContext, DrainHook, Lifecycle, ServiceOptions } from "./service.ts";
