// Shared by the tests and benchmarks of several packages.
export { findFreePort } from "./free-port.ts";
export { chromiumSkip, startChromium } from "./chromium.ts";
