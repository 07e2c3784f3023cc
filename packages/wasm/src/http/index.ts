// HTTP guests on the calling thread: modules of the http-wasm ABI whose instructions are counted.
export { GuestError, type GuestErrorCode } from "../errors.ts";
export { type FieldEdit, FieldList, type LateFields } from "./field-list.ts";
export { GuestInstances, GuestMemoryBudget, ModulePools } from "./guest-instances.ts";
export type { BodyPart, GuestEnvironment, GuestMessages, GuestVerdict } from "./guest-messages.ts";
export { Feature, LogLevel } from "./http-abi.ts";
export { HttpGuest } from "./http-guest.ts";
export { GUEST_MODULE_BYTES_MAX, type HttpModule, compileHttpModule } from "./http-module.ts";
