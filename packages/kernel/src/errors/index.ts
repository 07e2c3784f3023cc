// Errors: the error class, its codes, and problem documents.
export * from "./codes.ts";
export * from "./fault.ts";
export * from "./platform-error.ts";
export * from "./problem.ts";
