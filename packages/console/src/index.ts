// The server of the web console.
export { createConsoleKeys } from "./config.ts";
export { ServiceConsole } from "./service/service-console.ts";
