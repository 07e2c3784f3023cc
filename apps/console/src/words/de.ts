// German texts of the console.
import { FRAME } from "./german/frame.ts";
import { MESSAGING } from "./german/messaging.ts";
import { SERVICES } from "./german/services.ts";

/** German texts by the English ones. */
export const DE: Readonly<Record<string, string>> = { ...FRAME, ...MESSAGING, ...SERVICES };
