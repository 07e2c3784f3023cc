// Builds the page. All paths are below /ui/, in every service.
import { defineConfig } from "vite";

export default defineConfig({
  base: "/ui/",
  root: import.meta.dirname,
  oxc: { jsx: { runtime: "automatic", importSource: "preact" } },
  build: {
    target: "es2024",
    modulePreload: { polyfill: false },
    // Data URLs in styles are forbidden by the Content Security Policy for fonts.
    assetsInlineLimit: 0,
    emptyOutDir: true,
    reportCompressedSize: false,
  },
});
