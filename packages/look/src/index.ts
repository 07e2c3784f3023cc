// The look of all pages.
export { type FontFile, type Look, loadLook } from "./look.ts";
