// Errors: one class, one closed list of codes, one wire form.
export * from "./codes.ts";
export * from "./platform-error.ts";
export * from "./problem.ts";
