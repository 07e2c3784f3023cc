// The look of all pages.
export { type FontFile, type Look, loadInlineTokens, loadLook } from "./look.ts";
