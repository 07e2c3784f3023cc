// The server of the web console.
export { createConsoleKeys } from "./config.ts";
export { startFront, type Front, type FrontOptions } from "./front/front.ts";
export { createScriptRoute } from "./page/script-route.ts";
export { ServiceConsole, type ServiceConsoleOptions } from "./service/service-console.ts";
