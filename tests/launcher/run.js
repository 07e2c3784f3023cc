// A bin like those in bin/, for the tests in this folder.
import { launch } from "../../bin/launch.js";

await launch(import.meta.url, new URL("program.ts", import.meta.url).href);
