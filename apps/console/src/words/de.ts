// German texts of the console.
import { FRAME } from "./german/frame.ts";
import { MESSAGING } from "./german/messaging.ts";
import { RUNTIME } from "./german/runtime.ts";
import { SERVICES } from "./german/services.ts";
import { STORAGE } from "./german/storage.ts";

/** German texts by the English ones. */
export const DE: Readonly<Record<string, string>> = {
  ...FRAME,
  ...MESSAGING,
  ...SERVICES,
  ...RUNTIME,
  ...STORAGE,
};
