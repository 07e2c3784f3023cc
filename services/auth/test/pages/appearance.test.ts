// Scripts of the pages, and the looks that operators and clients give them, with one browser.
import "./scripts.ts";
import "./brand.ts";
import "./client-logo.ts";
