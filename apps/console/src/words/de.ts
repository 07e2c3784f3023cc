// German texts of the console.
import { ACCESS } from "./german/access.ts";
import { FAULTS } from "./german/faults.ts";
import { FINDINGS } from "./german/findings.ts";
import { FRAME } from "./german/frame.ts";
import { GATEWAY } from "./german/gateway.ts";
import { MAIL } from "./german/mail.ts";
import { MESSAGING } from "./german/messaging.ts";
import { PROBLEMS } from "./german/problems.ts";
import { PROJECTS } from "./german/projects.ts";
import { RUNTIME } from "./german/runtime.ts";
import { SERVICES } from "./german/services.ts";
import { STORAGE } from "./german/storage.ts";

/** German texts by the English ones. */
export const DE: Readonly<Record<string, string>> = {
  ...ACCESS,
  ...FAULTS,
  ...FINDINGS,
  ...FRAME,
  ...GATEWAY,
  ...MAIL,
  ...MESSAGING,
  ...PROBLEMS,
  ...PROJECTS,
  ...SERVICES,
  ...RUNTIME,
  ...STORAGE,
};
