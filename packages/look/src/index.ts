// The look of all pages.
export {
  FONT_CACHE_CONTROL,
  type FontFile,
  type Look,
  loadInlineTokens,
  loadLook,
} from "./look.ts";
